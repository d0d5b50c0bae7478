# The same without bytecode, as images are that were told to be small.
ARG BASE_IMAGE
FROM ${BASE_IMAGE}
RUN find /opt/sglang -name '*.pyc' -delete
