# The Lab in a container. `docker compose up` builds it and opens it to this machine alone.
# On the lock's platform, so that every package is installed by its hash.
FROM --platform=linux/amd64 python:3.11-slim-bookworm

# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends make \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home --uid 1000 kbert

USER 1000
WORKDIR /home/kbert/lab
RUN mkdir /home/kbert/workspaces

# The packages change less often than the program, so they have a layer of their own.
COPY --chown=1000:1000 Makefile pyproject.toml README.md LICENSE NOTICE requirements.lock requirements.txt ./
RUN PIP_NO_CACHE_DIR=1 make .venv/.ready
COPY --chown=1000:1000 kbert_core kbert_core
COPY --chown=1000:1000 kbert_lab kbert_lab
COPY --chown=1000:1000 app app
COPY --chown=1000:1000 demo_kgs demo_kgs
COPY --chown=1000:1000 models models

# Visitors come through the container's border, and may not name files in it. Pages of other hosts
# are refused: behind a proxy, name its host here, too.
ENV STREAMLIT_SERVER_ADDRESS=0.0.0.0 \
    STREAMLIT_SERVER_ALLOWED_HOSTS="localhost 127.0.0.1" \
    KBERT_OPEN_PATHS=0 \
    KBERT_WORKSPACES=/home/kbert/workspaces \
    HF_HUB_OFFLINE=1
EXPOSE 8501
HEALTHCHECK --start-period=60s CMD [".venv/bin/python", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:8501/_stcore/health')"]
CMD [".venv/bin/kbert", "lab", "--no-browser"]
