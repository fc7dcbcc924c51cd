"""Why a model or its tokenizer can't be read, in words that say what to do."""

from pathlib import Path

COPY_TOKENIZER = "Copy tokenizer.json (or vocab.txt) and tokenizer_config.json into the folder."
SAVED_ANEW = (
    "If the tensors have Hugging Face's names or older ones, load and save the model once with "
    "transformers: AutoModel.from_pretrained(FOLDER).save_pretrained(FOLDER, "
    "safe_serialization=True). To keep its task head, use AutoModelForTokenClassification or a "
    "similar class instead of AutoModel."
)


def why(folder: Path, reason: str, *, tokenizer: bool) -> str:
    """Say why a model can't be read, or its tokenizer; ``reason`` is a library's."""
    if not folder.exists():
        from kbert_core.checkpoints.hub import no_model_at

        return no_model_at(folder, reason)
    if tokenizer:
        return f"{folder}: the tokenizer can't be read ({reason}). {COPY_TOKENIZER}"
    if not (folder / "config.json").is_file():
        return (
            f"{folder}: found no config.json, so this isn't a Hugging Face model. Name the "
            "folder that has a config.json."
        )
    if not list(folder.glob("*.safetensors")):
        other = ", ".join(sorted(p.name for p in folder.glob("*.bin"))) or "no weights"
        return (
            f"{folder}: found {other}, expected model.safetensors. Bring a checkpoint of the "
            f"released K-BERT in with `kbert convert`. {SAVED_ANEW}"
        )
    if "ignore_mismatched_sizes" in reason:
        reason = "its weights have other sizes than its config.json states"
    return f"{folder}: the checkpoint can't be read ({reason}). Copy or download it again."
