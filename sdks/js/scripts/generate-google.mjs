// Generates src/gen/google/rpc_pb.ts: the messages in which a broker says why it refused a call.
//
// They are Google's, so they are made from Google's package whenever the SDK is built, and are not kept in
// the repository. Nothing but Node is needed: protobufjs reads the .proto files, and protoc-gen-es is handed
// what they describe, as protoc would hand it over.
import { spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import {
  CodeGeneratorRequestSchema,
  CodeGeneratorResponseSchema,
  FileDescriptorSetSchema,
  file_google_protobuf_any,
  file_google_protobuf_duration,
} from '@bufbuild/protobuf/wkt';
import protobuf from 'protobufjs';
import descriptor from 'protobufjs/ext/descriptor/index.js';

const FILES = ['google/rpc/status.proto', 'google/rpc/error_details.proto'];
const MESSAGES = ['Status', 'ErrorInfo', 'RetryInfo'];

const require = createRequire(import.meta.url);
const protos = dirname(require.resolve('google-proto-files/package.json'));
const generator = join(
  dirname(require.resolve('@bufbuild/protoc-gen-es/package.json')),
  'bin',
  'protoc-gen-es',
);
const home = fileURLToPath(new URL('../src/gen/', import.meta.url));

const root = new protobuf.Root();
root.resolvePath = (_, target) => join(protos, target);
root.loadSync(FILES, { keepCase: true }).resolveAll();
const encoded = descriptor.FileDescriptorSet.encode(root.toDescriptor('proto3')).finish();
// protobufjs describes a package, not a file: this is all of google.rpc that the two files hold.
const rpc = fromBinary(FileDescriptorSetSchema, encoded).file.find((file) => file.package === 'google.rpc');
const imported = [file_google_protobuf_any.proto, file_google_protobuf_duration.proto];
rpc.name = 'google/rpc.proto';
rpc.messageType = rpc.messageType.filter((message) => MESSAGES.includes(message.name));
rpc.messageType.forEach(qualifyTypes);
rpc.dependency = imported.map((file) => file.name);

const request = create(CodeGeneratorRequestSchema, {
  fileToGenerate: [rpc.name],
  parameter: 'target=ts,import_extension=js',
  protoFile: [...imported, rpc],
});
const run = spawnSync(process.execPath, [generator], {
  input: toBinary(CodeGeneratorRequestSchema, request),
  stdio: ['pipe', 'pipe', 'inherit'],
});
if (run.status !== 0) process.exit(run.status ?? 1);
const response = fromBinary(CodeGeneratorResponseSchema, run.stdout);
if (response.error) throw new Error(response.error);
for (const file of response.file) {
  const path = join(home, file.name);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, file.content);
}

// protobufjs names types as the source does; a descriptor names them in full, and the entry of a map
// `<Name>Entry`.
function qualifyTypes(message) {
  const type = root.lookupType(`google.rpc.${message.name}`);
  for (const nested of message.nestedType) if (nested.options?.mapEntry) nested.name += 'Entry';
  for (const field of message.field) {
    const { map, resolvedType } = type.fieldsById[field.number];
    field.jsonName = protobuf.util.camelCase(field.name);
    if (map) field.typeName = `${type.fullName}.${field.typeName}Entry`;
    else if (resolvedType) field.typeName = resolvedType.fullName;
  }
}
