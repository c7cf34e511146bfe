# docker build -t syncattn . && docker run -it syncattn        (CPU)
# docker build --build-arg TORCH=torch==2.13.0 -t syncattn . && docker run --gpus all -it syncattn
FROM python:3.12-slim
RUN apt-get update && apt-get install -y --no-install-recommends g++ && rm -rf /var/lib/apt/lists/*
WORKDIR /syncattn
COPY . .
ARG TORCH
RUN bash scripts/install.sh && rm -rf ~/.cache
ENV PATH=/syncattn/.venv/bin:$PATH
CMD ["bash"]
