"""Tiny models that are hardly decided on a text, so that little flips them."""

import torch

from kbert_core import Pipeline


def undecided(folder, *texts, graph, tokens=slice(4, 8), **reading):
    """Take from a model's bias what it says of a text.

    Args:
        folder: of a checkpoint with a task head.
        texts: one text.
        graph: it is read with.
        tokens: along N, on which a model that labels tokens is to be undecided.
        reading: how it is read.
    """
    pipeline = Pipeline.from_pretrained(folder, device="cpu")
    logits = pipeline(*texts, graph=graph, decode=False, **reading).logits[0]
    model = pipeline.encoder.model
    of_tokens = pipeline.card.task == "mask"
    bias = model.cls.predictions.decoder.bias if of_tokens else model.classifier.bias
    with torch.no_grad():
        bias -= logits if logits.dim() == 1 else logits[tokens].mean(0)
    return pipeline
