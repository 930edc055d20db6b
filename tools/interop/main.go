// Command interop prints the descriptors of grpc.testing, as google.golang.org/grpc carries them: the edge's messages
// are made of these, so that no copy of the files is kept here.
package main

import (
	"fmt"
	"os"

	"google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
)

func main() {
	files := &descriptorpb.FileDescriptorSet{}
	for _, file := range []protoreflect.FileDescriptor{
		grpc_testing.File_grpc_testing_empty_proto,
		grpc_testing.File_grpc_testing_messages_proto,
		grpc_testing.File_grpc_testing_test_proto,
	} {
		files.File = append(files.File, protodesc.ToFileDescriptorProto(file))
	}
	packed, err := proto.Marshal(files)
	if err == nil {
		_, err = os.Stdout.Write(packed)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "interop:", err)
		os.Exit(1)
	}
}
