# docker build -t syncattn . && docker run -it syncattn        (CPU)
# docker build --build-arg TORCH=torch==2.13.0 -t syncattn . && docker run --gpus all -it syncattn
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
