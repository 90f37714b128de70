# onebit serve in a container: docs/serving.md, "In a container". `make image` builds it.
# To build on the very same files again, name the image by its digest: `make pin-images` finds it and writes it to .env.
ARG PYTHON_IMAGE=python:3.11-slim-bookworm

FROM ${PYTHON_IMAGE} AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
WORKDIR /build
COPY requirements/ requirements/
RUN python -m pip install -c requirements/base.txt -c requirements/dev.txt hatchling \
 && python -m venv /opt/onebit \
 && /opt/onebit/bin/python -m pip install -r requirements/base.txt -r requirements/serve.txt -r requirements/postgres.txt
COPY pyproject.toml README.md LICENSE ./
COPY src/ src/
RUN python -m pip wheel --no-deps --no-build-isolation --wheel-dir wheels . \
 && /opt/onebit/bin/python -m pip install --no-deps --no-index wheels/onebit-*.whl

FROM ${PYTHON_IMAGE}
# A number, so that an orchestrator can see that it is not root.
RUN useradd --uid 10001 --user-group --create-home --shell /usr/sbin/nologin onebit \
 && install --directory --owner=10001 --group=10001 --mode=0700 /data /var/cache/onebit
COPY --from=build /opt/onebit /opt/onebit
ENV PATH=/opt/onebit/bin:$PATH NUMBA_CACHE_DIR=/var/cache/onebit
USER 10001:10001
# As the user who runs it: compiled code of others is not loaded. No volume, which would hide it when the image is newer.
RUN onebit warm-up all
# Deciders and tokens.
VOLUME ["/data"]
EXPOSE 8018
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 \
  CMD ["python", "-c", "import http.client as h; c = h.HTTPConnection('127.0.0.1', 8018, timeout=4); c.request('GET', '/healthz'); raise SystemExit(c.getresponse().status != 200)"]
ENTRYPOINT ["onebit"]
CMD ["serve", "/data", "--host", "0.0.0.0"]
