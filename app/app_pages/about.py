"""About: models with their cards, device, versions, limits, a self-check."""

import platform
from importlib.metadata import PackageNotFoundError, version

import streamlit as st

from app import services
from app.app_pages.self_check import run_checks
from app.models import ModelInfo
from app.texts import listed, t
from app.view_models.html import markdown
from app.view_models.styles import CSS
from kbert_core import KBertError
from kbert_core.checkpoints import adapters
from kbert_core.checkpoints.checkpoint import device_named
from kbert_core.tasks import TASKS

SHOWN_VERSIONS = ("kbert-lab", "torch", "transformers", "tokenizers", "streamlit", "pyvis")


def page() -> None:
    """What this is, what it runs on, and whether it keeps its promises."""
    st.html(CSS)
    st.title(t("app.title"), anchor=False)
    st.markdown(t("about.what"))
    left, right = st.columns([3, 2], gap="large")
    with left:
        models()
    with right:
        self_check()
        installation()
        st.subheader(t("about.limits"), anchor=False)
        st.markdown(
            t(
                "about.limits_text",
                longest=f"{services.LONGEST_TEXT:,}",
                graph=services.MOST_BYTES >> 20,
                upload=st.get_option("server.maxUploadSize"),
            )
        )
        st.subheader(t("about.licences"), anchor=False)
        st.markdown(t("about.licences_text"))


def models() -> None:
    """Every model with its card."""
    st.subheader(t("about.models"), anchor=False)
    found = services.models()
    if not found:
        st.info(markdown(t("about.no_models", folder=services.models_folder())))
    for info in found:
        model(info)
    if services.english_encoder():
        with st.container(border=True):
            st.markdown("**all-MiniLM-L6-v2**")
            st.caption(t("about.encoder"))


def model(info: ModelInfo) -> None:
    """One model: what it is for, its size, its card."""
    with st.container(border=True):
        st.markdown(f"**{markdown(info.name)}**")
        if info.problem:
            st.error(markdown(info.problem))
            return
        config = services.config_of(info.path)
        task = t(f"task.{info.card.task if info.card.task in TASKS else 'tree'}")
        facts = [
            (t("about.task"), task),
            (t("about.knowledge"), listed(info.card.knowledge) or t("about.none")),
            (t("about.size"), size_of(info)),
        ]
        if "num_hidden_layers" in config:
            shape = t(
                "about.shape_value",
                layers=config.get("num_hidden_layers"),
                hidden=config.get("hidden_size"),
                heads=config.get("num_attention_heads"),
            )
            facts.append((t("about.shape"), shape))
        if length := info.card.reading.max_length:
            facts.append((t("about.length"), t("about.length_value", n=length)))
        named = [t("text.named", name=name, value=value) for name, value in facts]
        st.caption(" · ".join(map(markdown, named)))
        readme = services.model_readme(info.path)
        with st.expander(t("about.card")):
            if readme:
                st.markdown(readme)
            else:
                st.caption(t("about.no_card"))


def size_of(info: ModelInfo) -> str:
    """The weights' size; an adapter's without its encoder's."""
    key = "about.size_adapter" if adapters.is_adapter(info.path) else "about.size_whole"
    return t(key, size=f"{services.model_size(info.path) / 1e6:.1f}")


def self_check() -> None:
    """Run the promises on a loaded model."""
    st.subheader(t("about.check"), anchor=False)
    st.caption(t("about.check_what"))
    offered = {info.path: info.name for info in services.models() if not info.problem}
    english = services.english_encoder()
    if english:
        offered[english] = "all-MiniLM-L6-v2"
    if not offered:
        return
    chosen = st.selectbox(
        t("lab.model"), list(offered), format_func=lambda path: offered[path], key="about.model"
    )
    if not st.button(t("about.check_button", name=offered[chosen]), key="about.check"):
        return
    try:
        results = run_checks(services.pipeline(chosen, "auto"))
    except KBertError as error:
        st.error(markdown(error))
        return
    for result in results:
        icon = ":material/check_circle:" if result.passed else ":material/error:"
        said = t("about.passed" if result.passed else "about.failed")
        text = t("text.named", name=markdown(t("about.check_" + result.name)), value=f"**{said}**")
        if result.value is not None:
            value = f"{result.value:.1e}" if result.value else "0"
            text += f" {markdown(t('about.check_value', value=value))}"
        (st.success if result.passed else st.error)(text, icon=icon)


def installation() -> None:
    """Device and versions."""
    st.subheader(t("about.here"), anchor=False)
    rows = [
        "- " + t("text.named", name=t("about.device"), value=device_named("auto")),
        f"- Python {platform.python_version()}",
    ]
    for name in SHOWN_VERSIONS:
        try:
            rows.append(f"- {name} {version(name)}")
        except PackageNotFoundError:
            continue
    st.markdown("\n".join(rows))


page()
