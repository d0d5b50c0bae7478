# The same, with bytecode.
ARG BASE_IMAGE
FROM ${BASE_IMAGE}
RUN python3 -m compileall -q -j 0 /opt/packages || true
