"""Scorers that choose triples by what an encoder makes of them; see ``knowledge.strategies``."""

from dataclasses import replace
from functools import lru_cache

from kbert_core.checkpoints.checkpoint import load_model, load_tokenizer
from kbert_core.errors import OptionError
from kbert_core.knowledge.selection import InjectionOptions, Strategy
from kbert_core.knowledge.strategies import TripleScorer
from kbert_core.scoring.learned import LearnedScorer
from kbert_core.scoring.similarity import Similarity
from kbert_core.text import WordPieces

OWN = "model"  # as the name of an encoder: that of the model that reads


def scorer_of(
    options: InjectionOptions, own: Similarity | None = None, *, device: str = "auto"
) -> TripleScorer | None:
    """Open what the options score triples with; None where nothing is scored by a model.

    Args:
        own: the similarity under the encoder of the model that reads.

    Raises:
        OptionError: it is the model's own encoder, and there is no model.
        CheckpointError: an encoder or a scorer can't be read.
    """
    if options.strategy is Strategy.CONTEXT:
        return _similarity(options.scorer or OWN, own, device)
    if options.strategy is Strategy.LEARNED:
        assert options.scorer is not None
        learned = LearnedScorer.load(options.scorer)
        return replace(learned, similarity=_similarity(learned.encoder, own, device))
    return None


def _similarity(name: str, own: Similarity | None, device: str) -> Similarity:
    if name != OWN:
        return similarity_under(name, device)
    if own is None:
        raise OptionError(
            "Triples are to be scored by the model's own encoder, and there is no model. "
            "Name a model, or an encoder as the scorer."
        )
    return own


@lru_cache(maxsize=2)
def similarity_under(path: str, device: str = "auto") -> Similarity:
    """Open an encoder to score with: a folder, a hub name or package:NAME.

    Raises:
        CheckpointError: it can't be read.
    """
    return Similarity(load_model(path, device=device), WordPieces(load_tokenizer(path)))
