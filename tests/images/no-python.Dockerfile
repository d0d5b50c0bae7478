FROM scratch
COPY README /README
CMD ["/hello"]
