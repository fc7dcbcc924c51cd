"""Black or white: what can be read on a colour."""

from collections.abc import Sequence

# Where black and white have the same contrast, 4.58: neither ever has less than 4.5 on its side.
_MIDDLE = (1.05 * 0.05) ** 0.5 - 0.05


def luminance(colour: Sequence[int]) -> float:
    """Return the relative luminance of red, green and blue from 0 to 255 (WCAG 2)."""
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
        for part in (value / 255 for value in colour)
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def ink_on(colour: Sequence[int]) -> str:
    """Return the text colour with the most contrast on a colour: at least 4.5 to 1 on any."""
    return "#000" if luminance(colour) > _MIDDLE else "#fff"
