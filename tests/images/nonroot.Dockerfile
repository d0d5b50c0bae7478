# Runs as nobody in particular, and starts something else than Python.
ARG BASE_IMAGE
FROM ${BASE_IMAGE}
WORKDIR /app
RUN printf 'import json\nimport heavy.part\n' > mine.py && mkdir heavy && \
    printf 'import decimal\n' > heavy/__init__.py && printf 'X = 1\n' > heavy/part.py && \
    printf 'import sys, mine\nprint(sys.argv[1:])\n' > start.py
ENV FROM_IMAGE=yes
USER 1234:4321
ENTRYPOINT ["/bin/false"]
HEALTHCHECK --interval=1s CMD ["/bin/false"]
