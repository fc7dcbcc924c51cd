"""About: models with their cards, device, versions, limits."""

import platform
from importlib.metadata import version

import streamlit as st

from app import services
from kbert_core.checkpoints.checkpoint import device_named
from kbert_lab.lab.models import ModelInfo
from kbert_lab.lab.texts import refusal, t, without_folders
from kbert_lab.lab.views import model_facts
from kbert_lab.lab.views.html import CSS, markdown
from kbert_lab.lab.words import TASK_TEXTS

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
        st.subheader(t("Models"), anchor=False)
        found = services.offer().models
        if not found:
            folder = without_folders(str(services.models_folder()))
            st.info(markdown(t("No model in {folder}.", folder=folder)))
        for info in found:
            model(info)
    with right:
        st.subheader(t("This installation"), anchor=False)
        device = t("{name}: {value}", name=t("Device"), value=device_named("auto"))
        versions = [f"{name} {version(name)}" for name in SHOWN_VERSIONS]
        python = f"Python {platform.python_version()}"
        st.markdown("\n".join(f"- {own}" for own in (device, python, *versions)))
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


def model(info: ModelInfo) -> None:
    """One model: what it is for and how good it is; opened, all that its card says."""
    if info.problem:
        st.error(markdown(f"{info.name}: {refusal(info.problem)}"))
        return
    task = t(TASK_TEXTS.get(info.card.task or "", TASK_TEXTS["tree"]))
    with st.expander(" · ".join([f"**{markdown(info.name)}**", task, *model_facts.scores(info)])):
        size = t("{size} MB", size=f"{services.model_size(info.path) / 1e6:.1f}")
        st.caption(markdown(f"{size} · {model_facts.facts(info)}"))
        st.markdown(services.model_readme(info.path) or "")


page()
