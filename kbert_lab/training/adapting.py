"""Models that are saved without their encoder: low-rank adapters, and what is inserted alone."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from safetensors.torch import save_file
from torch import Tensor, nn
from transformers import PreTrainedModel

from kbert_core.checkpoints import adapters
from kbert_core.checkpoints.encoders import (
    FROZEN_FILE,
    PACKAGE,
    encoder_name,
    is_adapter,
)
from kbert_core.errors import CheckpointError, EncoderError, OptionError
from kbert_core.layers import INSERTED


def check_options(rank: int, *, encoder: str, output: str | Path) -> None:
    """Refuse an adapter that can't be trained on this encoder or into this folder.

    Raises:
        OptionError: see above.
    """
    if is_adapter(encoder):
        first = adapters.read_adapter(encoder)
        if rank != first.rank:
            raise OptionError(
                f"{encoder} is an adapter of rank {first.rank}, and keeps it when it is trained "
                f"further. Give --adapter {first.rank}; or leave --adapter out, to train the "
                "whole merged model."
            )
        encoder = str(first.encoder)
    if Path(encoder).is_dir() and Path(encoder).resolve() == Path(output).resolve():
        raise OptionError(
            f"{output} is the encoder's own folder, which the adapter needs. Name another --output."
        )


def attach(
    model: PreTrainedModel,
    *,
    rank: int,
    alpha: float | None = None,
    missing: Iterable[str] = (),
    further: adapters.Adapter | None = None,
) -> Any:
    """Put a low-rank adapter on every linear layer of an encoder, in place.

    What was there is frozen but for the task head, which is trained whole.
    An adapter that hasn't been trained changes nothing.

    Args:
        model: with its task head; its config gets the hash of the encoder's weights.
        rank: of the low-rank products.
        alpha: they are scaled by alpha / rank; None: twice the rank, or as ``further``.
        missing: parameters that the encoder's checkpoint didn't hold.
        further: an adapter to start from, of this rank.

    Returns:
        The ``PeftModel`` around the model.

    Raises:
        EncoderError: it has no linear layers.
        CheckpointError: a missing parameter is neither adapted nor of the head; or the
            adapter to start from is broken, or was trained on another encoder.
        OptionError: that adapter is for another task or other labels.
    """
    from peft import LoraConfig

    head, body = adapters.head_modules(model), [model.base_model_prefix]
    lost = [name for name in missing if not adapters.under(name, head)]
    if lost:
        raise CheckpointError(
            f"The encoder lacks {lost[0]}. An adapter can't store it, because it is not part of "
            "the task head. Train the whole model without --adapter."
        )
    layers = [name for name, module in model.named_modules() if isinstance(module, nn.Linear)]
    linear = [
        name for name in layers if adapters.under(name, body) and not adapters.under(name, head)
    ]
    if not linear:
        raise EncoderError(
            f"{type(model).__name__} has no linear layers to adapt. Train it without --adapter."
        )
    encoder_hash = adapters.weights_hash(model, head)
    scale = further.alpha if further else alpha or 2 * rank
    setattr(model.config, adapters.HASH_KEY, encoder_hash)
    options: dict[str, Any] = {"r": rank, "lora_alpha": scale, "target_modules": linear}
    if further:
        adapters.check_encoder(further.folder, further.encoder, encoder_hash, further.encoder_hash)
        _check_head(further, model)
    peft = adapters.peft_model(model, LoraConfig(**options, modules_to_save=head))
    if further:
        adapters.fill(peft, further)
    return peft


def _check_head(adapter: adapters.Adapter, model: PreTrainedModel) -> None:
    labels = {str(number): label for number, label in dict(model.config.id2label or {}).items()}
    if type(model) is not adapter.model_class or (adapter.labels and adapter.labels != labels):
        now, before = (
            f"{kind.__name__}: {', '.join(names.values())}"
            for kind, names in ((type(model), labels), (adapter.model_class, adapter.labels))
        )
        raise OptionError(
            f"The adapter {adapter.folder} has the task head ({before}), but this training needs "
            f"({now}). Give its encoder, {adapter.encoder}, or leave --adapter out to train the "
            "whole merged model."
        )


def save_adapter(peft: Any, folder: str | Path, *, encoder: str) -> None:
    """Save an attached adapter, its head, what is inserted between layers, and the model's config.

    Of the encoder only the name is kept.

    Raises:
        OSError, SafetensorError: a file can't be written.
    """
    folder, model = Path(folder), peft.get_base_model()
    peft.peft_config["default"].base_model_name_or_path = encoder
    peft.save_pretrained(str(folder), save_embedding_layers=False)
    if inserted := inserted_in(model):
        save_file(inserted, folder / FROZEN_FILE, metadata={"format": "pt"})
    model.config.architectures = [type(model).__name__]
    model.config.dtype = str(model.dtype).removeprefix("torch.")
    model.config.save_pretrained(folder)


def described(peft: Any, encoder: str, output: str | Path) -> dict[str, Any]:
    """What a model's card says of an adapter: encoder, rank and sizes in parameters."""
    name = encoder_name(encoder, output)
    settings, (trained, both) = peft.peft_config["default"], peft.get_nb_trainable_parameters()
    return {
        "encoder": Path(name).name if Path(encoder).is_dir() and PACKAGE not in name else name,
        "adapter": {"rank": settings.r, "alpha": settings.lora_alpha, "trained": trained},
        "parameters": both - trained,  # as many as with the adapter merged: the head is there twice
    }


def inserted_in(encoder: PreTrainedModel) -> dict[str, Tensor]:
    """Return the weights of the inserted modules, by name; empty if there are none."""
    every = encoder.state_dict().items()
    return {n: own.detach().cpu().contiguous() for n, own in every if f".{INSERTED}." in n}


def only_inserted_trains(model: PreTrainedModel) -> bool:
    """Whether all that a training changes of a model is inserted between its layers."""
    trained = [name for name, own in model.named_parameters() if own.requires_grad]
    return bool(trained) and all(f".{INSERTED}." in name for name in trained)


def name_encoder(model: PreTrainedModel, encoder: str) -> None:
    """Put the encoder's name and the hash of its weights into a model's config."""
    setattr(model.config, adapters.ENCODER_KEY, encoder)
    setattr(model.config, adapters.HASH_KEY, adapters.hash_without_inserted(model))


def save_inserted(model: PreTrainedModel, folder: str | Path) -> None:
    """Save what is inserted, and the config, which names the encoder already.

    Raises:
        OSError, SafetensorError: a file can't be written.
    """
    save_file(inserted_in(model), Path(folder) / FROZEN_FILE, metadata={"format": "pt"})
    model.config.save_pretrained(folder)
