# Training, and all else:
#   docker build -t syncattn . && docker run -it syncattn        (CPU)
#   docker build --build-arg TORCH=torch==2.13.0 -t syncattn . && docker run --gpus all -it syncattn
# Serving the exported model in ./export:
#   docker build --target serve -t syncattn-serve .
#   docker run -p 8000:8000 -v "$PWD/export:/model:ro" syncattn-serve
FROM python:3.13-slim AS wheels
WORKDIR /syncattn
COPY . .
RUN bash scripts/build.sh

FROM python:3.13-slim AS serve
RUN --mount=type=bind,from=wheels,source=/syncattn,target=/syncattn \
    pip install --no-cache-dir --no-compile --find-links /syncattn/dist -c /syncattn/constraints.txt \
    'syncattn-fairseq[serve]'
RUN useradd --create-home syncattn
USER syncattn
EXPOSE 8000
ENTRYPOINT ["syncattn-serve", "--path", "/model", "--host", "0.0.0.0"]

FROM python:3.13-slim AS build
WORKDIR /syncattn
COPY . .
ARG TORCH
RUN bash scripts/install.sh && rm -rf ~/.cache

FROM python:3.13-slim
RUN useradd --create-home syncattn
COPY --from=build --chown=syncattn /syncattn /syncattn
USER syncattn
WORKDIR /home/syncattn
ENV PATH=/syncattn/.venv/bin:$PATH
CMD ["bash"]
