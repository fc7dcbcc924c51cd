"""On what share of the dev mentions an edit like the example's works."""

from collections.abc import Mapping
from typing import Any

from app.texts import N_, t

RESTS_TEXTS = {"unseen": N_("unseen"), "seen": N_("seen")}


def shares(notes: Mapping[str, Any] | None) -> str | None:
    """Say the shares a card reports, or None where it reports none; plain text."""
    dev = ((notes or {}).get("edit_response") or {}).get("dev") or {}
    parts = []
    for kind in ("unseen", "seen"):
        found = dev.get(kind)
        if not isinstance(found, Mapping) or not isinstance(found.get("new"), int | float):
            continue
        share = f"{100 * found['new']:.1f} %"
        key = (
            N_("{share} of the mentions {kind} in training (n = {n})")
            if found.get("n")
            else N_("{share} of the mentions {kind} in training")
        )
        parts.append(t(key, share=share, kind=t(RESTS_TEXTS[kind]), n=found.get("n")))
    return t(" and ").join(parts) or None
