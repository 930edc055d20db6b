package dev.fila.v1;

import static io.grpc.MethodDescriptor.generateFullMethodName;

/**
 * <pre>
 * Put messages in, get them out fairly, settle them.
 * </pre>
 */
@io.grpc.stub.annotations.GrpcGenerated
public final class FilaServiceGrpc {

  private FilaServiceGrpc() {}

  public static final java.lang.String SERVICE_NAME = "fila.v1.FilaService";

  // Static method descriptors that strictly reflect the proto.
  private static volatile io.grpc.MethodDescriptor<dev.fila.v1.EnqueueRequest,
      dev.fila.v1.EnqueueResponse> getEnqueueMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "Enqueue",
      requestType = dev.fila.v1.EnqueueRequest.class,
      responseType = dev.fila.v1.EnqueueResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.fila.v1.EnqueueRequest,
      dev.fila.v1.EnqueueResponse> getEnqueueMethod() {
    io.grpc.MethodDescriptor<dev.fila.v1.EnqueueRequest, dev.fila.v1.EnqueueResponse> getEnqueueMethod;
    if ((getEnqueueMethod = FilaServiceGrpc.getEnqueueMethod) == null) {
      synchronized (FilaServiceGrpc.class) {
        if ((getEnqueueMethod = FilaServiceGrpc.getEnqueueMethod) == null) {
          FilaServiceGrpc.getEnqueueMethod = getEnqueueMethod =
              io.grpc.MethodDescriptor.<dev.fila.v1.EnqueueRequest, dev.fila.v1.EnqueueResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "Enqueue"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.EnqueueRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.EnqueueResponse.getDefaultInstance()))
              .setSchemaDescriptor(new FilaServiceMethodDescriptorSupplier("Enqueue"))
              .build();
        }
      }
    }
    return getEnqueueMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.fila.v1.EnqueueBatchRequest,
      dev.fila.v1.EnqueueBatchResponse> getEnqueueBatchMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "EnqueueBatch",
      requestType = dev.fila.v1.EnqueueBatchRequest.class,
      responseType = dev.fila.v1.EnqueueBatchResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.fila.v1.EnqueueBatchRequest,
      dev.fila.v1.EnqueueBatchResponse> getEnqueueBatchMethod() {
    io.grpc.MethodDescriptor<dev.fila.v1.EnqueueBatchRequest, dev.fila.v1.EnqueueBatchResponse> getEnqueueBatchMethod;
    if ((getEnqueueBatchMethod = FilaServiceGrpc.getEnqueueBatchMethod) == null) {
      synchronized (FilaServiceGrpc.class) {
        if ((getEnqueueBatchMethod = FilaServiceGrpc.getEnqueueBatchMethod) == null) {
          FilaServiceGrpc.getEnqueueBatchMethod = getEnqueueBatchMethod =
              io.grpc.MethodDescriptor.<dev.fila.v1.EnqueueBatchRequest, dev.fila.v1.EnqueueBatchResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "EnqueueBatch"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.EnqueueBatchRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.EnqueueBatchResponse.getDefaultInstance()))
              .setSchemaDescriptor(new FilaServiceMethodDescriptorSupplier("EnqueueBatch"))
              .build();
        }
      }
    }
    return getEnqueueBatchMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.fila.v1.EnqueueStreamRequest,
      dev.fila.v1.EnqueueStreamResponse> getEnqueueStreamMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "EnqueueStream",
      requestType = dev.fila.v1.EnqueueStreamRequest.class,
      responseType = dev.fila.v1.EnqueueStreamResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.BIDI_STREAMING)
  public static io.grpc.MethodDescriptor<dev.fila.v1.EnqueueStreamRequest,
      dev.fila.v1.EnqueueStreamResponse> getEnqueueStreamMethod() {
    io.grpc.MethodDescriptor<dev.fila.v1.EnqueueStreamRequest, dev.fila.v1.EnqueueStreamResponse> getEnqueueStreamMethod;
    if ((getEnqueueStreamMethod = FilaServiceGrpc.getEnqueueStreamMethod) == null) {
      synchronized (FilaServiceGrpc.class) {
        if ((getEnqueueStreamMethod = FilaServiceGrpc.getEnqueueStreamMethod) == null) {
          FilaServiceGrpc.getEnqueueStreamMethod = getEnqueueStreamMethod =
              io.grpc.MethodDescriptor.<dev.fila.v1.EnqueueStreamRequest, dev.fila.v1.EnqueueStreamResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.BIDI_STREAMING)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "EnqueueStream"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.EnqueueStreamRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.EnqueueStreamResponse.getDefaultInstance()))
              .setSchemaDescriptor(new FilaServiceMethodDescriptorSupplier("EnqueueStream"))
              .build();
        }
      }
    }
    return getEnqueueStreamMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.fila.v1.ConsumeRequest,
      dev.fila.v1.ConsumeResponse> getConsumeMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "Consume",
      requestType = dev.fila.v1.ConsumeRequest.class,
      responseType = dev.fila.v1.ConsumeResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.SERVER_STREAMING)
  public static io.grpc.MethodDescriptor<dev.fila.v1.ConsumeRequest,
      dev.fila.v1.ConsumeResponse> getConsumeMethod() {
    io.grpc.MethodDescriptor<dev.fila.v1.ConsumeRequest, dev.fila.v1.ConsumeResponse> getConsumeMethod;
    if ((getConsumeMethod = FilaServiceGrpc.getConsumeMethod) == null) {
      synchronized (FilaServiceGrpc.class) {
        if ((getConsumeMethod = FilaServiceGrpc.getConsumeMethod) == null) {
          FilaServiceGrpc.getConsumeMethod = getConsumeMethod =
              io.grpc.MethodDescriptor.<dev.fila.v1.ConsumeRequest, dev.fila.v1.ConsumeResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.SERVER_STREAMING)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "Consume"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.ConsumeRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.ConsumeResponse.getDefaultInstance()))
              .setSchemaDescriptor(new FilaServiceMethodDescriptorSupplier("Consume"))
              .build();
        }
      }
    }
    return getConsumeMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.fila.v1.LeaseRequest,
      dev.fila.v1.LeaseResponse> getLeaseMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "Lease",
      requestType = dev.fila.v1.LeaseRequest.class,
      responseType = dev.fila.v1.LeaseResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.fila.v1.LeaseRequest,
      dev.fila.v1.LeaseResponse> getLeaseMethod() {
    io.grpc.MethodDescriptor<dev.fila.v1.LeaseRequest, dev.fila.v1.LeaseResponse> getLeaseMethod;
    if ((getLeaseMethod = FilaServiceGrpc.getLeaseMethod) == null) {
      synchronized (FilaServiceGrpc.class) {
        if ((getLeaseMethod = FilaServiceGrpc.getLeaseMethod) == null) {
          FilaServiceGrpc.getLeaseMethod = getLeaseMethod =
              io.grpc.MethodDescriptor.<dev.fila.v1.LeaseRequest, dev.fila.v1.LeaseResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "Lease"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.LeaseRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.LeaseResponse.getDefaultInstance()))
              .setSchemaDescriptor(new FilaServiceMethodDescriptorSupplier("Lease"))
              .build();
        }
      }
    }
    return getLeaseMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.fila.v1.ConsumeSessionRequest,
      dev.fila.v1.ConsumeSessionResponse> getConsumeSessionMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "ConsumeSession",
      requestType = dev.fila.v1.ConsumeSessionRequest.class,
      responseType = dev.fila.v1.ConsumeSessionResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.BIDI_STREAMING)
  public static io.grpc.MethodDescriptor<dev.fila.v1.ConsumeSessionRequest,
      dev.fila.v1.ConsumeSessionResponse> getConsumeSessionMethod() {
    io.grpc.MethodDescriptor<dev.fila.v1.ConsumeSessionRequest, dev.fila.v1.ConsumeSessionResponse> getConsumeSessionMethod;
    if ((getConsumeSessionMethod = FilaServiceGrpc.getConsumeSessionMethod) == null) {
      synchronized (FilaServiceGrpc.class) {
        if ((getConsumeSessionMethod = FilaServiceGrpc.getConsumeSessionMethod) == null) {
          FilaServiceGrpc.getConsumeSessionMethod = getConsumeSessionMethod =
              io.grpc.MethodDescriptor.<dev.fila.v1.ConsumeSessionRequest, dev.fila.v1.ConsumeSessionResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.BIDI_STREAMING)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "ConsumeSession"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.ConsumeSessionRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.ConsumeSessionResponse.getDefaultInstance()))
              .setSchemaDescriptor(new FilaServiceMethodDescriptorSupplier("ConsumeSession"))
              .build();
        }
      }
    }
    return getConsumeSessionMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.fila.v1.AckRequest,
      dev.fila.v1.AckResponse> getAckMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "Ack",
      requestType = dev.fila.v1.AckRequest.class,
      responseType = dev.fila.v1.AckResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.fila.v1.AckRequest,
      dev.fila.v1.AckResponse> getAckMethod() {
    io.grpc.MethodDescriptor<dev.fila.v1.AckRequest, dev.fila.v1.AckResponse> getAckMethod;
    if ((getAckMethod = FilaServiceGrpc.getAckMethod) == null) {
      synchronized (FilaServiceGrpc.class) {
        if ((getAckMethod = FilaServiceGrpc.getAckMethod) == null) {
          FilaServiceGrpc.getAckMethod = getAckMethod =
              io.grpc.MethodDescriptor.<dev.fila.v1.AckRequest, dev.fila.v1.AckResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "Ack"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.AckRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.AckResponse.getDefaultInstance()))
              .setSchemaDescriptor(new FilaServiceMethodDescriptorSupplier("Ack"))
              .build();
        }
      }
    }
    return getAckMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.fila.v1.NackRequest,
      dev.fila.v1.NackResponse> getNackMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "Nack",
      requestType = dev.fila.v1.NackRequest.class,
      responseType = dev.fila.v1.NackResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.fila.v1.NackRequest,
      dev.fila.v1.NackResponse> getNackMethod() {
    io.grpc.MethodDescriptor<dev.fila.v1.NackRequest, dev.fila.v1.NackResponse> getNackMethod;
    if ((getNackMethod = FilaServiceGrpc.getNackMethod) == null) {
      synchronized (FilaServiceGrpc.class) {
        if ((getNackMethod = FilaServiceGrpc.getNackMethod) == null) {
          FilaServiceGrpc.getNackMethod = getNackMethod =
              io.grpc.MethodDescriptor.<dev.fila.v1.NackRequest, dev.fila.v1.NackResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "Nack"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.NackRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.NackResponse.getDefaultInstance()))
              .setSchemaDescriptor(new FilaServiceMethodDescriptorSupplier("Nack"))
              .build();
        }
      }
    }
    return getNackMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.fila.v1.AckBatchRequest,
      dev.fila.v1.SettleBatchResponse> getAckBatchMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "AckBatch",
      requestType = dev.fila.v1.AckBatchRequest.class,
      responseType = dev.fila.v1.SettleBatchResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.fila.v1.AckBatchRequest,
      dev.fila.v1.SettleBatchResponse> getAckBatchMethod() {
    io.grpc.MethodDescriptor<dev.fila.v1.AckBatchRequest, dev.fila.v1.SettleBatchResponse> getAckBatchMethod;
    if ((getAckBatchMethod = FilaServiceGrpc.getAckBatchMethod) == null) {
      synchronized (FilaServiceGrpc.class) {
        if ((getAckBatchMethod = FilaServiceGrpc.getAckBatchMethod) == null) {
          FilaServiceGrpc.getAckBatchMethod = getAckBatchMethod =
              io.grpc.MethodDescriptor.<dev.fila.v1.AckBatchRequest, dev.fila.v1.SettleBatchResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "AckBatch"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.AckBatchRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.SettleBatchResponse.getDefaultInstance()))
              .setSchemaDescriptor(new FilaServiceMethodDescriptorSupplier("AckBatch"))
              .build();
        }
      }
    }
    return getAckBatchMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.fila.v1.NackBatchRequest,
      dev.fila.v1.SettleBatchResponse> getNackBatchMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "NackBatch",
      requestType = dev.fila.v1.NackBatchRequest.class,
      responseType = dev.fila.v1.SettleBatchResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.fila.v1.NackBatchRequest,
      dev.fila.v1.SettleBatchResponse> getNackBatchMethod() {
    io.grpc.MethodDescriptor<dev.fila.v1.NackBatchRequest, dev.fila.v1.SettleBatchResponse> getNackBatchMethod;
    if ((getNackBatchMethod = FilaServiceGrpc.getNackBatchMethod) == null) {
      synchronized (FilaServiceGrpc.class) {
        if ((getNackBatchMethod = FilaServiceGrpc.getNackBatchMethod) == null) {
          FilaServiceGrpc.getNackBatchMethod = getNackBatchMethod =
              io.grpc.MethodDescriptor.<dev.fila.v1.NackBatchRequest, dev.fila.v1.SettleBatchResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "NackBatch"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.NackBatchRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.SettleBatchResponse.getDefaultInstance()))
              .setSchemaDescriptor(new FilaServiceMethodDescriptorSupplier("NackBatch"))
              .build();
        }
      }
    }
    return getNackBatchMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.fila.v1.ExtendLeaseRequest,
      dev.fila.v1.ExtendLeaseResponse> getExtendLeaseMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "ExtendLease",
      requestType = dev.fila.v1.ExtendLeaseRequest.class,
      responseType = dev.fila.v1.ExtendLeaseResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.fila.v1.ExtendLeaseRequest,
      dev.fila.v1.ExtendLeaseResponse> getExtendLeaseMethod() {
    io.grpc.MethodDescriptor<dev.fila.v1.ExtendLeaseRequest, dev.fila.v1.ExtendLeaseResponse> getExtendLeaseMethod;
    if ((getExtendLeaseMethod = FilaServiceGrpc.getExtendLeaseMethod) == null) {
      synchronized (FilaServiceGrpc.class) {
        if ((getExtendLeaseMethod = FilaServiceGrpc.getExtendLeaseMethod) == null) {
          FilaServiceGrpc.getExtendLeaseMethod = getExtendLeaseMethod =
              io.grpc.MethodDescriptor.<dev.fila.v1.ExtendLeaseRequest, dev.fila.v1.ExtendLeaseResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "ExtendLease"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.ExtendLeaseRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.ExtendLeaseResponse.getDefaultInstance()))
              .setSchemaDescriptor(new FilaServiceMethodDescriptorSupplier("ExtendLease"))
              .build();
        }
      }
    }
    return getExtendLeaseMethod;
  }

  /**
   * Creates a new async stub that supports all call types for the service
   */
  public static FilaServiceStub newStub(io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<FilaServiceStub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<FilaServiceStub>() {
        @java.lang.Override
        public FilaServiceStub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new FilaServiceStub(channel, callOptions);
        }
      };
    return FilaServiceStub.newStub(factory, channel);
  }

  /**
   * Creates a new blocking-style stub that supports all types of calls on the service
   */
  public static FilaServiceBlockingV2Stub newBlockingV2Stub(
      io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<FilaServiceBlockingV2Stub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<FilaServiceBlockingV2Stub>() {
        @java.lang.Override
        public FilaServiceBlockingV2Stub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new FilaServiceBlockingV2Stub(channel, callOptions);
        }
      };
    return FilaServiceBlockingV2Stub.newStub(factory, channel);
  }

  /**
   * Creates a new blocking-style stub that supports unary and streaming output calls on the service
   */
  public static FilaServiceBlockingStub newBlockingStub(
      io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<FilaServiceBlockingStub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<FilaServiceBlockingStub>() {
        @java.lang.Override
        public FilaServiceBlockingStub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new FilaServiceBlockingStub(channel, callOptions);
        }
      };
    return FilaServiceBlockingStub.newStub(factory, channel);
  }

  /**
   * Creates a new ListenableFuture-style stub that supports unary calls on the service
   */
  public static FilaServiceFutureStub newFutureStub(
      io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<FilaServiceFutureStub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<FilaServiceFutureStub>() {
        @java.lang.Override
        public FilaServiceFutureStub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new FilaServiceFutureStub(channel, callOptions);
        }
      };
    return FilaServiceFutureStub.newStub(factory, channel);
  }

  /**
   * <pre>
   * Put messages in, get them out fairly, settle them.
   * </pre>
   */
  public interface AsyncService {

    /**
     * <pre>
     * Store one message; answered once it is as durable as the queue asks for.
     * </pre>
     */
    default void enqueue(dev.fila.v1.EnqueueRequest request,
        io.grpc.stub.StreamObserver<dev.fila.v1.EnqueueResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getEnqueueMethod(), responseObserver);
    }

    /**
     * <pre>
     * Store many messages in one call.
     * </pre>
     */
    default void enqueueBatch(dev.fila.v1.EnqueueBatchRequest request,
        io.grpc.stub.StreamObserver<dev.fila.v1.EnqueueBatchResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getEnqueueBatchMethod(), responseObserver);
    }

    /**
     * <pre>
     * Store batch after batch over one stream, without waiting for each answer; the fastest way to produce.
     * </pre>
     */
    default io.grpc.stub.StreamObserver<dev.fila.v1.EnqueueStreamRequest> enqueueStream(
        io.grpc.stub.StreamObserver<dev.fila.v1.EnqueueStreamResponse> responseObserver) {
      return io.grpc.stub.ServerCalls.asyncUnimplementedStreamingCall(getEnqueueStreamMethod(), responseObserver);
    }

    /**
     * <pre>
     * Receive messages as they become ready, up to `max_in_flight` leased at once; settle them with Ack and Nack.
     * </pre>
     */
    default void consume(dev.fila.v1.ConsumeRequest request,
        io.grpc.stub.StreamObserver<dev.fila.v1.ConsumeResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getConsumeMethod(), responseObserver);
    }

    /**
     * <pre>
     * Pull messages that are ready, waiting a while for the first one.
     * </pre>
     */
    default void lease(dev.fila.v1.LeaseRequest request,
        io.grpc.stub.StreamObserver<dev.fila.v1.LeaseResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getLeaseMethod(), responseObserver);
    }

    /**
     * <pre>
     * One stream a consumer: credit, acks, nacks and extensions up, deliveries and settle results down; the
     * fastest way to consume.
     * </pre>
     */
    default io.grpc.stub.StreamObserver<dev.fila.v1.ConsumeSessionRequest> consumeSession(
        io.grpc.stub.StreamObserver<dev.fila.v1.ConsumeSessionResponse> responseObserver) {
      return io.grpc.stub.ServerCalls.asyncUnimplementedStreamingCall(getConsumeSessionMethod(), responseObserver);
    }

    /**
     * <pre>
     * The message is done in this channel; answered once that is durable.
     * </pre>
     */
    default void ack(dev.fila.v1.AckRequest request,
        io.grpc.stub.StreamObserver<dev.fila.v1.AckResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getAckMethod(), responseObserver);
    }

    /**
     * <pre>
     * The message failed; the queue's policy decides between a retry and the dead-letter queue.
     * </pre>
     */
    default void nack(dev.fila.v1.NackRequest request,
        io.grpc.stub.StreamObserver<dev.fila.v1.NackResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getNackMethod(), responseObserver);
    }

    /**
     * <pre>
     * Ack many messages of one queue and channel.
     * buf:lint:ignore RPC_RESPONSE_STANDARD_NAME
     * buf:lint:ignore RPC_REQUEST_RESPONSE_UNIQUE
     * </pre>
     */
    default void ackBatch(dev.fila.v1.AckBatchRequest request,
        io.grpc.stub.StreamObserver<dev.fila.v1.SettleBatchResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getAckBatchMethod(), responseObserver);
    }

    /**
     * <pre>
     * Nack many messages of one queue and channel.
     * buf:lint:ignore RPC_RESPONSE_STANDARD_NAME
     * buf:lint:ignore RPC_REQUEST_RESPONSE_UNIQUE
     * </pre>
     */
    default void nackBatch(dev.fila.v1.NackBatchRequest request,
        io.grpc.stub.StreamObserver<dev.fila.v1.SettleBatchResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getNackBatchMethod(), responseObserver);
    }

    /**
     * <pre>
     * Hold a leased message longer.
     * </pre>
     */
    default void extendLease(dev.fila.v1.ExtendLeaseRequest request,
        io.grpc.stub.StreamObserver<dev.fila.v1.ExtendLeaseResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getExtendLeaseMethod(), responseObserver);
    }
  }

  /**
   * Base class for the server implementation of the service FilaService.
   * <pre>
   * Put messages in, get them out fairly, settle them.
   * </pre>
   */
  public static abstract class FilaServiceImplBase
      implements io.grpc.BindableService, AsyncService {

    @java.lang.Override public final io.grpc.ServerServiceDefinition bindService() {
      return FilaServiceGrpc.bindService(this);
    }
  }

  /**
   * A stub to allow clients to do asynchronous rpc calls to service FilaService.
   * <pre>
   * Put messages in, get them out fairly, settle them.
   * </pre>
   */
  public static final class FilaServiceStub
      extends io.grpc.stub.AbstractAsyncStub<FilaServiceStub> {
    private FilaServiceStub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected FilaServiceStub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new FilaServiceStub(channel, callOptions);
    }

    /**
     * <pre>
     * Store one message; answered once it is as durable as the queue asks for.
     * </pre>
     */
    public void enqueue(dev.fila.v1.EnqueueRequest request,
        io.grpc.stub.StreamObserver<dev.fila.v1.EnqueueResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getEnqueueMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Store many messages in one call.
     * </pre>
     */
    public void enqueueBatch(dev.fila.v1.EnqueueBatchRequest request,
        io.grpc.stub.StreamObserver<dev.fila.v1.EnqueueBatchResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getEnqueueBatchMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Store batch after batch over one stream, without waiting for each answer; the fastest way to produce.
     * </pre>
     */
    public io.grpc.stub.StreamObserver<dev.fila.v1.EnqueueStreamRequest> enqueueStream(
        io.grpc.stub.StreamObserver<dev.fila.v1.EnqueueStreamResponse> responseObserver) {
      return io.grpc.stub.ClientCalls.asyncBidiStreamingCall(
          getChannel().newCall(getEnqueueStreamMethod(), getCallOptions()), responseObserver);
    }

    /**
     * <pre>
     * Receive messages as they become ready, up to `max_in_flight` leased at once; settle them with Ack and Nack.
     * </pre>
     */
    public void consume(dev.fila.v1.ConsumeRequest request,
        io.grpc.stub.StreamObserver<dev.fila.v1.ConsumeResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncServerStreamingCall(
          getChannel().newCall(getConsumeMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Pull messages that are ready, waiting a while for the first one.
     * </pre>
     */
    public void lease(dev.fila.v1.LeaseRequest request,
        io.grpc.stub.StreamObserver<dev.fila.v1.LeaseResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getLeaseMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * One stream a consumer: credit, acks, nacks and extensions up, deliveries and settle results down; the
     * fastest way to consume.
     * </pre>
     */
    public io.grpc.stub.StreamObserver<dev.fila.v1.ConsumeSessionRequest> consumeSession(
        io.grpc.stub.StreamObserver<dev.fila.v1.ConsumeSessionResponse> responseObserver) {
      return io.grpc.stub.ClientCalls.asyncBidiStreamingCall(
          getChannel().newCall(getConsumeSessionMethod(), getCallOptions()), responseObserver);
    }

    /**
     * <pre>
     * The message is done in this channel; answered once that is durable.
     * </pre>
     */
    public void ack(dev.fila.v1.AckRequest request,
        io.grpc.stub.StreamObserver<dev.fila.v1.AckResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getAckMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * The message failed; the queue's policy decides between a retry and the dead-letter queue.
     * </pre>
     */
    public void nack(dev.fila.v1.NackRequest request,
        io.grpc.stub.StreamObserver<dev.fila.v1.NackResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getNackMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Ack many messages of one queue and channel.
     * buf:lint:ignore RPC_RESPONSE_STANDARD_NAME
     * buf:lint:ignore RPC_REQUEST_RESPONSE_UNIQUE
     * </pre>
     */
    public void ackBatch(dev.fila.v1.AckBatchRequest request,
        io.grpc.stub.StreamObserver<dev.fila.v1.SettleBatchResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getAckBatchMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Nack many messages of one queue and channel.
     * buf:lint:ignore RPC_RESPONSE_STANDARD_NAME
     * buf:lint:ignore RPC_REQUEST_RESPONSE_UNIQUE
     * </pre>
     */
    public void nackBatch(dev.fila.v1.NackBatchRequest request,
        io.grpc.stub.StreamObserver<dev.fila.v1.SettleBatchResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getNackBatchMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Hold a leased message longer.
     * </pre>
     */
    public void extendLease(dev.fila.v1.ExtendLeaseRequest request,
        io.grpc.stub.StreamObserver<dev.fila.v1.ExtendLeaseResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getExtendLeaseMethod(), getCallOptions()), request, responseObserver);
    }
  }

  /**
   * A stub to allow clients to do synchronous rpc calls to service FilaService.
   * <pre>
   * Put messages in, get them out fairly, settle them.
   * </pre>
   */
  public static final class FilaServiceBlockingV2Stub
      extends io.grpc.stub.AbstractBlockingStub<FilaServiceBlockingV2Stub> {
    private FilaServiceBlockingV2Stub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected FilaServiceBlockingV2Stub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new FilaServiceBlockingV2Stub(channel, callOptions);
    }

    /**
     * <pre>
     * Store one message; answered once it is as durable as the queue asks for.
     * </pre>
     */
    public dev.fila.v1.EnqueueResponse enqueue(dev.fila.v1.EnqueueRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getEnqueueMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Store many messages in one call.
     * </pre>
     */
    public dev.fila.v1.EnqueueBatchResponse enqueueBatch(dev.fila.v1.EnqueueBatchRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getEnqueueBatchMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Store batch after batch over one stream, without waiting for each answer; the fastest way to produce.
     * </pre>
     */
    @io.grpc.ExperimentalApi("https://github.com/grpc/grpc-java/issues/10918")
    public io.grpc.stub.BlockingClientCall<dev.fila.v1.EnqueueStreamRequest, dev.fila.v1.EnqueueStreamResponse>
        enqueueStream() {
      return io.grpc.stub.ClientCalls.blockingBidiStreamingCall(
          getChannel(), getEnqueueStreamMethod(), getCallOptions());
    }

    /**
     * <pre>
     * Receive messages as they become ready, up to `max_in_flight` leased at once; settle them with Ack and Nack.
     * </pre>
     */
    @io.grpc.ExperimentalApi("https://github.com/grpc/grpc-java/issues/10918")
    public io.grpc.stub.BlockingClientCall<?, dev.fila.v1.ConsumeResponse>
        consume(dev.fila.v1.ConsumeRequest request) {
      return io.grpc.stub.ClientCalls.blockingV2ServerStreamingCall(
          getChannel(), getConsumeMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Pull messages that are ready, waiting a while for the first one.
     * </pre>
     */
    public dev.fila.v1.LeaseResponse lease(dev.fila.v1.LeaseRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getLeaseMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * One stream a consumer: credit, acks, nacks and extensions up, deliveries and settle results down; the
     * fastest way to consume.
     * </pre>
     */
    @io.grpc.ExperimentalApi("https://github.com/grpc/grpc-java/issues/10918")
    public io.grpc.stub.BlockingClientCall<dev.fila.v1.ConsumeSessionRequest, dev.fila.v1.ConsumeSessionResponse>
        consumeSession() {
      return io.grpc.stub.ClientCalls.blockingBidiStreamingCall(
          getChannel(), getConsumeSessionMethod(), getCallOptions());
    }

    /**
     * <pre>
     * The message is done in this channel; answered once that is durable.
     * </pre>
     */
    public dev.fila.v1.AckResponse ack(dev.fila.v1.AckRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getAckMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * The message failed; the queue's policy decides between a retry and the dead-letter queue.
     * </pre>
     */
    public dev.fila.v1.NackResponse nack(dev.fila.v1.NackRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getNackMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Ack many messages of one queue and channel.
     * buf:lint:ignore RPC_RESPONSE_STANDARD_NAME
     * buf:lint:ignore RPC_REQUEST_RESPONSE_UNIQUE
     * </pre>
     */
    public dev.fila.v1.SettleBatchResponse ackBatch(dev.fila.v1.AckBatchRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getAckBatchMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Nack many messages of one queue and channel.
     * buf:lint:ignore RPC_RESPONSE_STANDARD_NAME
     * buf:lint:ignore RPC_REQUEST_RESPONSE_UNIQUE
     * </pre>
     */
    public dev.fila.v1.SettleBatchResponse nackBatch(dev.fila.v1.NackBatchRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getNackBatchMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Hold a leased message longer.
     * </pre>
     */
    public dev.fila.v1.ExtendLeaseResponse extendLease(dev.fila.v1.ExtendLeaseRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getExtendLeaseMethod(), getCallOptions(), request);
    }
  }

  /**
   * A stub to allow clients to do limited synchronous rpc calls to service FilaService.
   * <pre>
   * Put messages in, get them out fairly, settle them.
   * </pre>
   */
  public static final class FilaServiceBlockingStub
      extends io.grpc.stub.AbstractBlockingStub<FilaServiceBlockingStub> {
    private FilaServiceBlockingStub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected FilaServiceBlockingStub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new FilaServiceBlockingStub(channel, callOptions);
    }

    /**
     * <pre>
     * Store one message; answered once it is as durable as the queue asks for.
     * </pre>
     */
    public dev.fila.v1.EnqueueResponse enqueue(dev.fila.v1.EnqueueRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getEnqueueMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Store many messages in one call.
     * </pre>
     */
    public dev.fila.v1.EnqueueBatchResponse enqueueBatch(dev.fila.v1.EnqueueBatchRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getEnqueueBatchMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Receive messages as they become ready, up to `max_in_flight` leased at once; settle them with Ack and Nack.
     * </pre>
     */
    public java.util.Iterator<dev.fila.v1.ConsumeResponse> consume(
        dev.fila.v1.ConsumeRequest request) {
      return io.grpc.stub.ClientCalls.blockingServerStreamingCall(
          getChannel(), getConsumeMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Pull messages that are ready, waiting a while for the first one.
     * </pre>
     */
    public dev.fila.v1.LeaseResponse lease(dev.fila.v1.LeaseRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getLeaseMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * The message is done in this channel; answered once that is durable.
     * </pre>
     */
    public dev.fila.v1.AckResponse ack(dev.fila.v1.AckRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getAckMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * The message failed; the queue's policy decides between a retry and the dead-letter queue.
     * </pre>
     */
    public dev.fila.v1.NackResponse nack(dev.fila.v1.NackRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getNackMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Ack many messages of one queue and channel.
     * buf:lint:ignore RPC_RESPONSE_STANDARD_NAME
     * buf:lint:ignore RPC_REQUEST_RESPONSE_UNIQUE
     * </pre>
     */
    public dev.fila.v1.SettleBatchResponse ackBatch(dev.fila.v1.AckBatchRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getAckBatchMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Nack many messages of one queue and channel.
     * buf:lint:ignore RPC_RESPONSE_STANDARD_NAME
     * buf:lint:ignore RPC_REQUEST_RESPONSE_UNIQUE
     * </pre>
     */
    public dev.fila.v1.SettleBatchResponse nackBatch(dev.fila.v1.NackBatchRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getNackBatchMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Hold a leased message longer.
     * </pre>
     */
    public dev.fila.v1.ExtendLeaseResponse extendLease(dev.fila.v1.ExtendLeaseRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getExtendLeaseMethod(), getCallOptions(), request);
    }
  }

  /**
   * A stub to allow clients to do ListenableFuture-style rpc calls to service FilaService.
   * <pre>
   * Put messages in, get them out fairly, settle them.
   * </pre>
   */
  public static final class FilaServiceFutureStub
      extends io.grpc.stub.AbstractFutureStub<FilaServiceFutureStub> {
    private FilaServiceFutureStub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected FilaServiceFutureStub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new FilaServiceFutureStub(channel, callOptions);
    }

    /**
     * <pre>
     * Store one message; answered once it is as durable as the queue asks for.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.fila.v1.EnqueueResponse> enqueue(
        dev.fila.v1.EnqueueRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getEnqueueMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Store many messages in one call.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.fila.v1.EnqueueBatchResponse> enqueueBatch(
        dev.fila.v1.EnqueueBatchRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getEnqueueBatchMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Pull messages that are ready, waiting a while for the first one.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.fila.v1.LeaseResponse> lease(
        dev.fila.v1.LeaseRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getLeaseMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * The message is done in this channel; answered once that is durable.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.fila.v1.AckResponse> ack(
        dev.fila.v1.AckRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getAckMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * The message failed; the queue's policy decides between a retry and the dead-letter queue.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.fila.v1.NackResponse> nack(
        dev.fila.v1.NackRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getNackMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Ack many messages of one queue and channel.
     * buf:lint:ignore RPC_RESPONSE_STANDARD_NAME
     * buf:lint:ignore RPC_REQUEST_RESPONSE_UNIQUE
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.fila.v1.SettleBatchResponse> ackBatch(
        dev.fila.v1.AckBatchRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getAckBatchMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Nack many messages of one queue and channel.
     * buf:lint:ignore RPC_RESPONSE_STANDARD_NAME
     * buf:lint:ignore RPC_REQUEST_RESPONSE_UNIQUE
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.fila.v1.SettleBatchResponse> nackBatch(
        dev.fila.v1.NackBatchRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getNackBatchMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Hold a leased message longer.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.fila.v1.ExtendLeaseResponse> extendLease(
        dev.fila.v1.ExtendLeaseRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getExtendLeaseMethod(), getCallOptions()), request);
    }
  }

  private static final int METHODID_ENQUEUE = 0;
  private static final int METHODID_ENQUEUE_BATCH = 1;
  private static final int METHODID_CONSUME = 2;
  private static final int METHODID_LEASE = 3;
  private static final int METHODID_ACK = 4;
  private static final int METHODID_NACK = 5;
  private static final int METHODID_ACK_BATCH = 6;
  private static final int METHODID_NACK_BATCH = 7;
  private static final int METHODID_EXTEND_LEASE = 8;
  private static final int METHODID_ENQUEUE_STREAM = 9;
  private static final int METHODID_CONSUME_SESSION = 10;

  private static final class MethodHandlers<Req, Resp> implements
      io.grpc.stub.ServerCalls.UnaryMethod<Req, Resp>,
      io.grpc.stub.ServerCalls.ServerStreamingMethod<Req, Resp>,
      io.grpc.stub.ServerCalls.ClientStreamingMethod<Req, Resp>,
      io.grpc.stub.ServerCalls.BidiStreamingMethod<Req, Resp> {
    private final AsyncService serviceImpl;
    private final int methodId;

    MethodHandlers(AsyncService serviceImpl, int methodId) {
      this.serviceImpl = serviceImpl;
      this.methodId = methodId;
    }

    @java.lang.Override
    @java.lang.SuppressWarnings("unchecked")
    public void invoke(Req request, io.grpc.stub.StreamObserver<Resp> responseObserver) {
      switch (methodId) {
        case METHODID_ENQUEUE:
          serviceImpl.enqueue((dev.fila.v1.EnqueueRequest) request,
              (io.grpc.stub.StreamObserver<dev.fila.v1.EnqueueResponse>) responseObserver);
          break;
        case METHODID_ENQUEUE_BATCH:
          serviceImpl.enqueueBatch((dev.fila.v1.EnqueueBatchRequest) request,
              (io.grpc.stub.StreamObserver<dev.fila.v1.EnqueueBatchResponse>) responseObserver);
          break;
        case METHODID_CONSUME:
          serviceImpl.consume((dev.fila.v1.ConsumeRequest) request,
              (io.grpc.stub.StreamObserver<dev.fila.v1.ConsumeResponse>) responseObserver);
          break;
        case METHODID_LEASE:
          serviceImpl.lease((dev.fila.v1.LeaseRequest) request,
              (io.grpc.stub.StreamObserver<dev.fila.v1.LeaseResponse>) responseObserver);
          break;
        case METHODID_ACK:
          serviceImpl.ack((dev.fila.v1.AckRequest) request,
              (io.grpc.stub.StreamObserver<dev.fila.v1.AckResponse>) responseObserver);
          break;
        case METHODID_NACK:
          serviceImpl.nack((dev.fila.v1.NackRequest) request,
              (io.grpc.stub.StreamObserver<dev.fila.v1.NackResponse>) responseObserver);
          break;
        case METHODID_ACK_BATCH:
          serviceImpl.ackBatch((dev.fila.v1.AckBatchRequest) request,
              (io.grpc.stub.StreamObserver<dev.fila.v1.SettleBatchResponse>) responseObserver);
          break;
        case METHODID_NACK_BATCH:
          serviceImpl.nackBatch((dev.fila.v1.NackBatchRequest) request,
              (io.grpc.stub.StreamObserver<dev.fila.v1.SettleBatchResponse>) responseObserver);
          break;
        case METHODID_EXTEND_LEASE:
          serviceImpl.extendLease((dev.fila.v1.ExtendLeaseRequest) request,
              (io.grpc.stub.StreamObserver<dev.fila.v1.ExtendLeaseResponse>) responseObserver);
          break;
        default:
          throw new AssertionError();
      }
    }

    @java.lang.Override
    @java.lang.SuppressWarnings("unchecked")
    public io.grpc.stub.StreamObserver<Req> invoke(
        io.grpc.stub.StreamObserver<Resp> responseObserver) {
      switch (methodId) {
        case METHODID_ENQUEUE_STREAM:
          return (io.grpc.stub.StreamObserver<Req>) serviceImpl.enqueueStream(
              (io.grpc.stub.StreamObserver<dev.fila.v1.EnqueueStreamResponse>) responseObserver);
        case METHODID_CONSUME_SESSION:
          return (io.grpc.stub.StreamObserver<Req>) serviceImpl.consumeSession(
              (io.grpc.stub.StreamObserver<dev.fila.v1.ConsumeSessionResponse>) responseObserver);
        default:
          throw new AssertionError();
      }
    }
  }

  public static final io.grpc.ServerServiceDefinition bindService(AsyncService service) {
    return io.grpc.ServerServiceDefinition.builder(getServiceDescriptor())
        .addMethod(
          getEnqueueMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.fila.v1.EnqueueRequest,
              dev.fila.v1.EnqueueResponse>(
                service, METHODID_ENQUEUE)))
        .addMethod(
          getEnqueueBatchMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.fila.v1.EnqueueBatchRequest,
              dev.fila.v1.EnqueueBatchResponse>(
                service, METHODID_ENQUEUE_BATCH)))
        .addMethod(
          getEnqueueStreamMethod(),
          io.grpc.stub.ServerCalls.asyncBidiStreamingCall(
            new MethodHandlers<
              dev.fila.v1.EnqueueStreamRequest,
              dev.fila.v1.EnqueueStreamResponse>(
                service, METHODID_ENQUEUE_STREAM)))
        .addMethod(
          getConsumeMethod(),
          io.grpc.stub.ServerCalls.asyncServerStreamingCall(
            new MethodHandlers<
              dev.fila.v1.ConsumeRequest,
              dev.fila.v1.ConsumeResponse>(
                service, METHODID_CONSUME)))
        .addMethod(
          getLeaseMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.fila.v1.LeaseRequest,
              dev.fila.v1.LeaseResponse>(
                service, METHODID_LEASE)))
        .addMethod(
          getConsumeSessionMethod(),
          io.grpc.stub.ServerCalls.asyncBidiStreamingCall(
            new MethodHandlers<
              dev.fila.v1.ConsumeSessionRequest,
              dev.fila.v1.ConsumeSessionResponse>(
                service, METHODID_CONSUME_SESSION)))
        .addMethod(
          getAckMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.fila.v1.AckRequest,
              dev.fila.v1.AckResponse>(
                service, METHODID_ACK)))
        .addMethod(
          getNackMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.fila.v1.NackRequest,
              dev.fila.v1.NackResponse>(
                service, METHODID_NACK)))
        .addMethod(
          getAckBatchMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.fila.v1.AckBatchRequest,
              dev.fila.v1.SettleBatchResponse>(
                service, METHODID_ACK_BATCH)))
        .addMethod(
          getNackBatchMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.fila.v1.NackBatchRequest,
              dev.fila.v1.SettleBatchResponse>(
                service, METHODID_NACK_BATCH)))
        .addMethod(
          getExtendLeaseMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.fila.v1.ExtendLeaseRequest,
              dev.fila.v1.ExtendLeaseResponse>(
                service, METHODID_EXTEND_LEASE)))
        .build();
  }

  private static abstract class FilaServiceBaseDescriptorSupplier
      implements io.grpc.protobuf.ProtoFileDescriptorSupplier, io.grpc.protobuf.ProtoServiceDescriptorSupplier {
    FilaServiceBaseDescriptorSupplier() {}

    @java.lang.Override
    public com.google.protobuf.Descriptors.FileDescriptor getFileDescriptor() {
      return dev.fila.v1.ServiceProto.getDescriptor();
    }

    @java.lang.Override
    public com.google.protobuf.Descriptors.ServiceDescriptor getServiceDescriptor() {
      return getFileDescriptor().findServiceByName("FilaService");
    }
  }

  private static final class FilaServiceFileDescriptorSupplier
      extends FilaServiceBaseDescriptorSupplier {
    FilaServiceFileDescriptorSupplier() {}
  }

  private static final class FilaServiceMethodDescriptorSupplier
      extends FilaServiceBaseDescriptorSupplier
      implements io.grpc.protobuf.ProtoMethodDescriptorSupplier {
    private final java.lang.String methodName;

    FilaServiceMethodDescriptorSupplier(java.lang.String methodName) {
      this.methodName = methodName;
    }

    @java.lang.Override
    public com.google.protobuf.Descriptors.MethodDescriptor getMethodDescriptor() {
      return getServiceDescriptor().findMethodByName(methodName);
    }
  }

  private static volatile io.grpc.ServiceDescriptor serviceDescriptor;

  public static io.grpc.ServiceDescriptor getServiceDescriptor() {
    io.grpc.ServiceDescriptor result = serviceDescriptor;
    if (result == null) {
      synchronized (FilaServiceGrpc.class) {
        result = serviceDescriptor;
        if (result == null) {
          serviceDescriptor = result = io.grpc.ServiceDescriptor.newBuilder(SERVICE_NAME)
              .setSchemaDescriptor(new FilaServiceFileDescriptorSupplier())
              .addMethod(getEnqueueMethod())
              .addMethod(getEnqueueBatchMethod())
              .addMethod(getEnqueueStreamMethod())
              .addMethod(getConsumeMethod())
              .addMethod(getLeaseMethod())
              .addMethod(getConsumeSessionMethod())
              .addMethod(getAckMethod())
              .addMethod(getNackMethod())
              .addMethod(getAckBatchMethod())
              .addMethod(getNackBatchMethod())
              .addMethod(getExtendLeaseMethod())
              .build();
        }
      }
    }
    return result;
  }
}
