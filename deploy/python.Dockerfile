# An image for worlds and environments in Python: the program, the package and orjson. Build it in the root of the repository:
#   docker build -f deploy/python.Dockerfile -t registry.example.com/parley:1 .
# What your own worlds import is installed on top:
#   FROM registry.example.com/parley:1
#   RUN pip install --no-cache-dir numpy
#   COPY worlds/ /data/
FROM golang:1.26 AS go

FROM python:3.13-slim AS wheel
COPY --from=go /usr/local/go /usr/local/go
COPY . /src
RUN PATH="$PATH:/usr/local/go/bin" pip wheel --no-deps --wheel-dir /wheels /src/python

FROM python:3.13-slim
COPY --from=wheel /wheels /wheels
RUN pip install --no-cache-dir "$(echo /wheels/*.whl)[fast]" && mkdir -m 1777 /data
USER 65532:65532
WORKDIR /data
ENTRYPOINT ["parley"]
