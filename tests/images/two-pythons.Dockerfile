# The distribution's, and a virtual environment that comes first.
ARG BASE_IMAGE
FROM ${BASE_IMAGE}
RUN python3 -m venv --without-pip /opt/venv
ENV PATH=/opt/venv/bin:/usr/bin:/bin
