# The packages of the demo, as `pip install --no-compile` leaves them.
ARG BASE_IMAGE
FROM ${BASE_IMAGE}
COPY packages /opt/packages
ENV PYTHONPATH=/opt/packages
