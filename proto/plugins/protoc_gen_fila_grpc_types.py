"""A buf plugin: types for the service stubs, by mypy-protobuf, marked as generated.

It also leaves out files without a service, for which mypy-protobuf writes an empty module.
"""

import subprocess
import sys

from google.protobuf.compiler import plugin_pb2

HEADER = "# Generated from proto/ by `make gen`; do not edit.\n"


def generate(asked: bytes) -> plugin_pb2.CodeGeneratorResponse:
    answered = subprocess.run(["protoc-gen-mypy_grpc"], input=asked, capture_output=True, check=True).stdout
    response = plugin_pb2.CodeGeneratorResponse.FromString(answered)
    kept = [file for file in response.file if "Stub:" in file.content]
    del response.file[:]
    for file in kept:
        response.file.add(name=file.name, content=HEADER + file.content)
    return response


if __name__ == "__main__":
    sys.stdout.buffer.write(generate(sys.stdin.buffer.read()).SerializeToString())
