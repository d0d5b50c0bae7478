# sglang and all that it needs, with the bytecode that pip wrote.
ARG BASE_IMAGE
FROM ${BASE_IMAGE}
RUN python3 -m venv --without-pip /opt/sglang
COPY site-packages /opt/sglang/lib/python3.11/site-packages
ENV VIRTUAL_ENV=/opt/sglang
ENV PATH=/opt/sglang/bin:/usr/bin:/bin
