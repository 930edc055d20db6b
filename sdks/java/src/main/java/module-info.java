/** A client for the message broker Fila. */
module dev.fila.client {
    requires transitive io.grpc;
    requires transitive com.google.protobuf;
    requires io.grpc.stub;
    requires io.grpc.protobuf;
    requires proto.google.common.protos;
    requires com.google.common; // the generated stubs do
    requires jdk.unsupported; // for the transport, which is slower without
    requires static transitive org.jspecify;
    // Used when the program has it, never required.
    requires static io.opentelemetry.api;
    requires static io.opentelemetry.context;

    exports dev.fila.client;
    exports dev.fila.client.errors;
    exports dev.fila.v1;
}
