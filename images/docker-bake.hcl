# docker buildx bake -f images/docker-bake.hcl [sim | ascend-910b | ascend-a3], from the root of the checkout.
# The figures are those of versions.yaml's default row (a test compares them). With bake, hyper-parallel is a named
# context: a folder or a git reference, by default the public repository at the commit that docs/upstream.md was made with.

variable "SIM_BASE" { default = "debian:bookworm-slim" }
variable "CANN_REGISTRY" { default = "quay.io/ascend/cann" }
variable "CANN" { default = "9.1.0" }
variable "MINDSPORE" { default = "2.10.0" }
variable "TAG" { default = "hyper-repro" }
variable "REVISION" { default = "unknown" }
variable "PLATFORMS" { default = "" }
variable "HYPER_PARALLEL" { default = "https://github.com/mindspore-ai/hyper-parallel.git#fdd0a808423ac220f66a5009fdd827429b6fb82f" }
variable "WHEELS" { default = "images/context/wheels" }

group "default" { targets = ["sim", "ascend-910b", "ascend-a3"] }

target "_common" {
  context    = "."
  dockerfile = "images/Dockerfile"
  platforms  = PLATFORMS == "" ? [] : split(",", PLATFORMS)
  contexts   = { hyper-parallel = HYPER_PARALLEL, wheels = WHEELS }
  args       = { MINDSPORE = MINDSPORE, REVISION = REVISION, HYPER_PARALLEL = HYPER_PARALLEL }
}

target "sim" {
  inherits = ["_common"]
  target   = "sim"
  args     = { TARGET = "sim", SIM_BASE = SIM_BASE, CANN = "stand-in" }
  tags     = ["${TAG}:sim"]
}

target "ascend" {
  name     = "ascend-${chip}"
  matrix   = { chip = ["910b", "a3"] }
  inherits = ["_common"]
  target   = "ascend"
  args = {
    TARGET      = "ascend"
    CHIP        = chip
    CANN        = CANN
    CANN_WANTED = CANN
    CANN_BASE   = "${CANN_REGISTRY}:${CANN}-${chip}-ubuntu22.04-py3.12"
  }
  tags = ["${TAG}:ascend-${chip}"]
}
