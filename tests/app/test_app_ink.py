"""Text on any colour can be read."""

from hypothesis import given
from hypothesis import strategies as st

from app.view_models.ink import ink_on, luminance

parts = st.integers(0, 255)


@given(parts, parts, parts)
def test_ink_has_contrast_enough_on_any_colour(red, green, blue):
    ink = {"#000": 0.0, "#fff": 1.0}[ink_on((red, green, blue))]
    light, dark = sorted((luminance((red, green, blue)), ink), reverse=True)
    assert (light + 0.05) / (dark + 0.05) >= 4.5


def test_luminance_is_that_of_the_standard():
    assert luminance((255, 255, 255)) == 1
    assert luminance((0, 0, 0)) == 0
    assert round(luminance((0, 114, 178)), 4) == 0.1525  # #0072B2, the trunk's blue
