# An image with tlsd and nothing else: no shell, no other user, nothing to write
# to. It runs with a read-only root, without capabilities, and with
# no_new_privs:
#
#   docker build -t tlsd .
#   docker run --read-only --cap-drop ALL --security-opt no-new-privileges \
#     -v /etc/tlsd:/etc/tlsd:ro -p 443:8443 tlsd
#
# /etc/tlsd/tlsd.yaml is the configuration: with listen: ":8443", and with
# metrics: {listen: ":9100"}, which the health check asks: with another port give
# docker run a --health-cmd of its own. Mount directories, not
# files: a file that is replaced outside stays the old one inside. User 65532 has
# to be able to read keystores and password files.

FROM --platform=$BUILDPLATFORM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG TARGETOS TARGETARCH VERSION=dev
RUN CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH go build -trimpath -buildvcs=false -ldflags "-s -w -X main.version=$VERSION" -o /out/tlsd ./cmd/tlsd

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /out/tlsd /tlsd
USER 65532:65532
EXPOSE 8443 9100
ENTRYPOINT ["/tlsd"]
CMD ["--config", "/etc/tlsd/tlsd.yaml"]
HEALTHCHECK --interval=10s --timeout=5s --start-period=10s CMD ["/tlsd", "health", "--metrics", "127.0.0.1:9100"]
