"""Named entities as a picture: the text with its spans, before above now."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from app.texts import t
from app.view_models.figures import Form
from app.view_models.html import plain
from app.view_models.prediction import percent, span_changes, tints
from app.view_models.sheet import Sheet, sheet
from app.view_models.styles import CHANGED, ENTITY_TINTS
from kbert_core.explain.drawing import GREY
from kbert_core.tasks import NerPrediction, Span

WIDTH, LEFT = 640.0, 96.0  # points; what stands beside the lines
TEXT, LABEL = 12.0, 8.0
LINE = 52.0


@dataclass(frozen=True, slots=True)
class Piece:
    """A run of a text: one entity, or what is between two.

    Attributes:
        text: the text's own characters.
        span: the entity; None between.
    """

    text: str
    span: Span | None = None


def pieces(text: str, spans: Sequence[Span]) -> Iterator[Piece]:
    """Cut a text at its spans, in order; what is between two is cut into characters."""
    end = 0
    for span in sorted(spans, key=lambda s: s.start):
        yield from (Piece(c) for c in text[end : span.start])
        yield Piece(text[span.start : span.end], span)
        end = span.end
    yield from (Piece(c) for c in text[end:])


def tags_picture(
    text: str,
    after: NerPrediction,
    after_name: str,
    before: NerPrediction | None,
    before_name: str,
    form: Form,
) -> bytes:
    """Draw the entities; those that changed are ringed, those lost have a dashed ring."""
    firsts = [token for side in (after, before) if side for token in side.tokens[:1]]
    colours = tints([tag for token in firsts for tag in token.probabilities])
    rings: dict[tuple[int, int], bool] = {}
    lost: dict[tuple[int, int], bool] = {}
    for change in span_changes(before.spans, after.spans) if before is not None else ():
        if change.change == "lost":
            lost[change.start, change.end] = True
        elif change.change != "same":
            rings[change.start, change.end] = False
    with sheet(WIDTH) as page:
        y = 4.0
        if before is not None:
            head = (t("prediction.before"), before_name)
            y = _side(page, text, before, head, colours, lost, y)
        _side(page, text, after, (t("prediction.after"), after_name), colours, rings, y)
        return page.saved(form)


def _side(
    page: Sheet,
    text: str,
    prediction: NerPrediction,
    head: tuple[str, str],
    colours: dict[str, str],
    rings: dict[tuple[int, int], bool],
    y: float,
) -> float:
    page.text(LEFT - 14, y + 10, head[0], 9.5, bold=True, anchor="right")
    page.text(LEFT - 14, y + 23, head[1], 8, colour=GREY, anchor="right")
    x = LEFT
    for piece in pieces(text, prediction.spans):
        shown = piece.text if piece.span is None and piece.text == " " else plain(piece.text)
        width = max(page.width_of(shown, TEXT), 3.5)
        said = ""
        if piece.span is not None:
            said = f"{piece.span.label} {percent(piece.span.probability)}"
            width = max(width, page.width_of(said, LABEL)) + 10
        if x + width > page.width and x > LEFT:
            x, y = LEFT, y + LINE
        if piece.span is not None:
            tint = colours.get(piece.span.label, ENTITY_TINTS[-1])
            dashed = rings.get((piece.span.start, piece.span.end))
            edge = "none" if dashed is None else CHANGED
            page.box(x + 1, y - 2, width - 2, 37, (tint, 0.2), edge, dashed=bool(dashed), line=1.8)
            page.line([(x + 4, y + 35), (x + width - 4, y + 35)], tint, 2.2)
            page.text(x + width / 2, y + 26, said, LABEL)
        page.text(x + width / 2, y + 10, shown, TEXT)
        x += width + (2 if piece.span is not None else 0.8)
    return y + LINE
