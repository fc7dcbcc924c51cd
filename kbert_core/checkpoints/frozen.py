"""A model whose encoder stayed as it was: only what is inserted between its layers is kept.

Such a folder holds these weights and a config with our card; the encoder and its tokenizer stay
where they are, named in ``config.json`` and known by a hash of their weights, as an adapter's are.
"""

from pathlib import Path
from typing import Any

from safetensors.torch import save_file
from transformers import PreTrainedModel

from kbert_core.checkpoints.adapters import COPY_AGAIN, HASH_KEY, head_modules, weights_hash
from kbert_core.checkpoints.encoders import FROZEN_FILE, encoder_at
from kbert_core.errors import CheckpointError
from kbert_core.files import json_object
from kbert_core.layers import INSERTED, inserted_in

ENCODER_KEY = "kbert_frozen_encoder"


def only_inserted_trains(model: PreTrainedModel) -> bool:
    """Whether all that a training changes of a model is inserted between its layers."""
    trained = [name for name, own in model.named_parameters() if own.requires_grad]
    return bool(trained) and all(f".{INSERTED}." in name for name in trained)


def name_encoder(model: PreTrainedModel, encoder: str) -> None:
    """Put the encoder's name and the hash of its weights into a model's config."""
    setattr(model.config, ENCODER_KEY, encoder)
    setattr(model.config, HASH_KEY, _hash(model))


def save(model: PreTrainedModel, folder: str | Path) -> None:
    """Save what is inserted, and the config, which names the encoder already.

    Raises:
        OSError, SafetensorError: a file can't be written.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    save_file(inserted_in(model), folder / FROZEN_FILE, metadata={"format": "pt"})
    model.config.save_pretrained(folder)


def encoder_of(path: str | Path) -> str | Path:
    """Find the encoder of such a folder.

    Raises:
        CheckpointError: it isn't there, or isn't named.
    """
    file = Path(path) / "config.json"
    name = json_object(file, CheckpointError, COPY_AGAIN).get(ENCODER_KEY)
    if not isinstance(name, str) or not name:
        raise CheckpointError(f"{file}: names no encoder ({ENCODER_KEY}). {COPY_AGAIN}")
    return encoder_at(Path(path), name)


def check_encoder(path: str | Path, digest: Any, model: PreTrainedModel) -> None:
    """Refuse an encoder with other weights than the folder at ``path`` was trained on.

    Raises:
        CheckpointError: see above.
    """
    if _hash(model) != digest:
        raise CheckpointError(
            f"{path}: this model was trained on other weights than {encoder_of(path)} has now, "
            "so the two don't fit together. Restore the encoder's old weights, or train the "
            "model again: its card has the command."
        )


def _hash(model: PreTrainedModel) -> str:
    inserted = [name for name, _ in model.named_modules() if name.endswith(f".{INSERTED}")]
    return weights_hash(model, [*head_modules(model), *inserted])
