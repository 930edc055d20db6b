"""A buf plugin: Python messages, their types and the service stubs, by the compiler inside grpcio-tools.

buf can call `protoc` for messages but not for `grpc_python`, because grpcio-tools carries that generator
inside its compiler and not as a program of its own. So this plugin hands the whole request to that compiler,
which keeps messages and stubs at one version, and marks what comes back as generated.

Generated code runs with the libraries of its own version and newer ones, and users of the SDK have others that want
older ones. So the compiler is an old one (requirements/stubs.in), in an environment of its own beside this one: its
libraries are not those of the broker.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

from google.protobuf.compiler import plugin_pb2
from google.protobuf.descriptor_pb2 import FileDescriptorSet

COMPILER = Path(sys.prefix, "stubs", "bin", "python")
HEADER = "# Generated from proto/ by `make gen`; do not edit.\n"


def generate(request: plugin_pb2.CodeGeneratorRequest) -> plugin_pb2.CodeGeneratorResponse:
    response = plugin_pb2.CodeGeneratorResponse(
        supported_features=plugin_pb2.CodeGeneratorResponse.FEATURE_PROTO3_OPTIONAL
    )
    with tempfile.TemporaryDirectory() as scratch:
        descriptors = Path(scratch, "descriptors.bin")
        descriptors.write_bytes(FileDescriptorSet(file=request.proto_file).SerializeToString())
        out = Path(scratch, "out")
        out.mkdir()
        failed = subprocess.run(
            [
                str(COMPILER),
                "-W",
                "ignore",
                "-m",
                "grpc_tools.protoc",
                f"--descriptor_set_in={descriptors}",
                f"--python_out={out}",
                f"--pyi_out={out}",
                f"--grpc_python_out={out}",
                *request.file_to_generate,
            ],
            check=False,
        ).returncode
        if failed:
            response.error = f"the Python generator of grpcio-tools failed with exit code {failed}"
            return response
        for path in sorted(path for path in out.rglob("*") if path.is_file()):
            # A file without services still gets an empty module of stubs; nobody needs it.
            content = path.read_text()
            if path.name.endswith("_pb2_grpc.py") and "class " not in content:
                continue
            response.file.add(name=path.relative_to(out).as_posix(), content=HEADER + content)
    return response


if __name__ == "__main__":
    asked = plugin_pb2.CodeGeneratorRequest.FromString(sys.stdin.buffer.read())
    sys.stdout.buffer.write(generate(asked).SerializeToString())
