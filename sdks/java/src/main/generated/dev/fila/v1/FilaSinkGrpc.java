package dev.fila.v1;

import static io.grpc.MethodDescriptor.generateFullMethodName;

/**
 * <pre>
 * Stage, then publish once.
 * buf:lint:ignore SERVICE_SUFFIX
 * </pre>
 */
@io.grpc.stub.annotations.GrpcGenerated
public final class FilaSinkGrpc {

  private FilaSinkGrpc() {}

  public static final java.lang.String SERVICE_NAME = "fila.v1.FilaSink";

  // Static method descriptors that strictly reflect the proto.
  private static volatile io.grpc.MethodDescriptor<dev.fila.v1.OpenSinkRequest,
      dev.fila.v1.OpenSinkResponse> getOpenSinkMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "OpenSink",
      requestType = dev.fila.v1.OpenSinkRequest.class,
      responseType = dev.fila.v1.OpenSinkResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.fila.v1.OpenSinkRequest,
      dev.fila.v1.OpenSinkResponse> getOpenSinkMethod() {
    io.grpc.MethodDescriptor<dev.fila.v1.OpenSinkRequest, dev.fila.v1.OpenSinkResponse> getOpenSinkMethod;
    if ((getOpenSinkMethod = FilaSinkGrpc.getOpenSinkMethod) == null) {
      synchronized (FilaSinkGrpc.class) {
        if ((getOpenSinkMethod = FilaSinkGrpc.getOpenSinkMethod) == null) {
          FilaSinkGrpc.getOpenSinkMethod = getOpenSinkMethod =
              io.grpc.MethodDescriptor.<dev.fila.v1.OpenSinkRequest, dev.fila.v1.OpenSinkResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "OpenSink"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.OpenSinkRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.OpenSinkResponse.getDefaultInstance()))
              .setSchemaDescriptor(new FilaSinkMethodDescriptorSupplier("OpenSink"))
              .build();
        }
      }
    }
    return getOpenSinkMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.fila.v1.StageRequest,
      dev.fila.v1.StageResponse> getStageMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "Stage",
      requestType = dev.fila.v1.StageRequest.class,
      responseType = dev.fila.v1.StageResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.fila.v1.StageRequest,
      dev.fila.v1.StageResponse> getStageMethod() {
    io.grpc.MethodDescriptor<dev.fila.v1.StageRequest, dev.fila.v1.StageResponse> getStageMethod;
    if ((getStageMethod = FilaSinkGrpc.getStageMethod) == null) {
      synchronized (FilaSinkGrpc.class) {
        if ((getStageMethod = FilaSinkGrpc.getStageMethod) == null) {
          FilaSinkGrpc.getStageMethod = getStageMethod =
              io.grpc.MethodDescriptor.<dev.fila.v1.StageRequest, dev.fila.v1.StageResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "Stage"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.StageRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.StageResponse.getDefaultInstance()))
              .setSchemaDescriptor(new FilaSinkMethodDescriptorSupplier("Stage"))
              .build();
        }
      }
    }
    return getStageMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.fila.v1.PublishRequest,
      dev.fila.v1.PublishResponse> getPublishMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "Publish",
      requestType = dev.fila.v1.PublishRequest.class,
      responseType = dev.fila.v1.PublishResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.fila.v1.PublishRequest,
      dev.fila.v1.PublishResponse> getPublishMethod() {
    io.grpc.MethodDescriptor<dev.fila.v1.PublishRequest, dev.fila.v1.PublishResponse> getPublishMethod;
    if ((getPublishMethod = FilaSinkGrpc.getPublishMethod) == null) {
      synchronized (FilaSinkGrpc.class) {
        if ((getPublishMethod = FilaSinkGrpc.getPublishMethod) == null) {
          FilaSinkGrpc.getPublishMethod = getPublishMethod =
              io.grpc.MethodDescriptor.<dev.fila.v1.PublishRequest, dev.fila.v1.PublishResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "Publish"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.PublishRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.PublishResponse.getDefaultInstance()))
              .setSchemaDescriptor(new FilaSinkMethodDescriptorSupplier("Publish"))
              .build();
        }
      }
    }
    return getPublishMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.fila.v1.DropRequest,
      dev.fila.v1.DropResponse> getDropMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "Drop",
      requestType = dev.fila.v1.DropRequest.class,
      responseType = dev.fila.v1.DropResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.fila.v1.DropRequest,
      dev.fila.v1.DropResponse> getDropMethod() {
    io.grpc.MethodDescriptor<dev.fila.v1.DropRequest, dev.fila.v1.DropResponse> getDropMethod;
    if ((getDropMethod = FilaSinkGrpc.getDropMethod) == null) {
      synchronized (FilaSinkGrpc.class) {
        if ((getDropMethod = FilaSinkGrpc.getDropMethod) == null) {
          FilaSinkGrpc.getDropMethod = getDropMethod =
              io.grpc.MethodDescriptor.<dev.fila.v1.DropRequest, dev.fila.v1.DropResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "Drop"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.DropRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.DropResponse.getDefaultInstance()))
              .setSchemaDescriptor(new FilaSinkMethodDescriptorSupplier("Drop"))
              .build();
        }
      }
    }
    return getDropMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.fila.v1.ListSinksRequest,
      dev.fila.v1.ListSinksResponse> getListSinksMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "ListSinks",
      requestType = dev.fila.v1.ListSinksRequest.class,
      responseType = dev.fila.v1.ListSinksResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.fila.v1.ListSinksRequest,
      dev.fila.v1.ListSinksResponse> getListSinksMethod() {
    io.grpc.MethodDescriptor<dev.fila.v1.ListSinksRequest, dev.fila.v1.ListSinksResponse> getListSinksMethod;
    if ((getListSinksMethod = FilaSinkGrpc.getListSinksMethod) == null) {
      synchronized (FilaSinkGrpc.class) {
        if ((getListSinksMethod = FilaSinkGrpc.getListSinksMethod) == null) {
          FilaSinkGrpc.getListSinksMethod = getListSinksMethod =
              io.grpc.MethodDescriptor.<dev.fila.v1.ListSinksRequest, dev.fila.v1.ListSinksResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "ListSinks"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.ListSinksRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.ListSinksResponse.getDefaultInstance()))
              .setSchemaDescriptor(new FilaSinkMethodDescriptorSupplier("ListSinks"))
              .build();
        }
      }
    }
    return getListSinksMethod;
  }

  /**
   * Creates a new async stub that supports all call types for the service
   */
  public static FilaSinkStub newStub(io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<FilaSinkStub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<FilaSinkStub>() {
        @java.lang.Override
        public FilaSinkStub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new FilaSinkStub(channel, callOptions);
        }
      };
    return FilaSinkStub.newStub(factory, channel);
  }

  /**
   * Creates a new blocking-style stub that supports all types of calls on the service
   */
  public static FilaSinkBlockingV2Stub newBlockingV2Stub(
      io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<FilaSinkBlockingV2Stub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<FilaSinkBlockingV2Stub>() {
        @java.lang.Override
        public FilaSinkBlockingV2Stub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new FilaSinkBlockingV2Stub(channel, callOptions);
        }
      };
    return FilaSinkBlockingV2Stub.newStub(factory, channel);
  }

  /**
   * Creates a new blocking-style stub that supports unary and streaming output calls on the service
   */
  public static FilaSinkBlockingStub newBlockingStub(
      io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<FilaSinkBlockingStub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<FilaSinkBlockingStub>() {
        @java.lang.Override
        public FilaSinkBlockingStub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new FilaSinkBlockingStub(channel, callOptions);
        }
      };
    return FilaSinkBlockingStub.newStub(factory, channel);
  }

  /**
   * Creates a new ListenableFuture-style stub that supports unary calls on the service
   */
  public static FilaSinkFutureStub newFutureStub(
      io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<FilaSinkFutureStub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<FilaSinkFutureStub>() {
        @java.lang.Override
        public FilaSinkFutureStub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new FilaSinkFutureStub(channel, callOptions);
        }
      };
    return FilaSinkFutureStub.newStub(factory, channel);
  }

  /**
   * <pre>
   * Stage, then publish once.
   * buf:lint:ignore SERVICE_SUFFIX
   * </pre>
   */
  public interface AsyncService {

    /**
     * <pre>
     * Begin a run. What runs before it stage or publish from now on is refused, and what they staged is dropped.
     * </pre>
     */
    default void openSink(dev.fila.v1.OpenSinkRequest request,
        io.grpc.stub.StreamObserver<dev.fila.v1.OpenSinkResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getOpenSinkMethod(), responseObserver);
    }

    /**
     * <pre>
     * Store messages aside, on the disk. A repeat with the same key and the same messages stores nothing.
     * </pre>
     */
    default void stage(dev.fila.v1.StageRequest request,
        io.grpc.stub.StreamObserver<dev.fila.v1.StageResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getStageMethod(), responseObserver);
    }

    /**
     * <pre>
     * Put what the listed attempts of a batch staged into the queues, once. Answered when all of it is there.
     * </pre>
     */
    default void publish(dev.fila.v1.PublishRequest request,
        io.grpc.stub.StreamObserver<dev.fila.v1.PublishResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getPublishMethod(), responseObserver);
    }

    /**
     * <pre>
     * Give up attempts that were not published.
     * </pre>
     */
    default void drop(dev.fila.v1.DropRequest request,
        io.grpc.stub.StreamObserver<dev.fila.v1.DropResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getDropMethod(), responseObserver);
    }

    /**
     * <pre>
     * List the sinks that are remembered, by name, with what each has staged and which batch it published last.
     * </pre>
     */
    default void listSinks(dev.fila.v1.ListSinksRequest request,
        io.grpc.stub.StreamObserver<dev.fila.v1.ListSinksResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getListSinksMethod(), responseObserver);
    }
  }

  /**
   * Base class for the server implementation of the service FilaSink.
   * <pre>
   * Stage, then publish once.
   * buf:lint:ignore SERVICE_SUFFIX
   * </pre>
   */
  public static abstract class FilaSinkImplBase
      implements io.grpc.BindableService, AsyncService {

    @java.lang.Override public final io.grpc.ServerServiceDefinition bindService() {
      return FilaSinkGrpc.bindService(this);
    }
  }

  /**
   * A stub to allow clients to do asynchronous rpc calls to service FilaSink.
   * <pre>
   * Stage, then publish once.
   * buf:lint:ignore SERVICE_SUFFIX
   * </pre>
   */
  public static final class FilaSinkStub
      extends io.grpc.stub.AbstractAsyncStub<FilaSinkStub> {
    private FilaSinkStub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected FilaSinkStub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new FilaSinkStub(channel, callOptions);
    }

    /**
     * <pre>
     * Begin a run. What runs before it stage or publish from now on is refused, and what they staged is dropped.
     * </pre>
     */
    public void openSink(dev.fila.v1.OpenSinkRequest request,
        io.grpc.stub.StreamObserver<dev.fila.v1.OpenSinkResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getOpenSinkMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Store messages aside, on the disk. A repeat with the same key and the same messages stores nothing.
     * </pre>
     */
    public void stage(dev.fila.v1.StageRequest request,
        io.grpc.stub.StreamObserver<dev.fila.v1.StageResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getStageMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Put what the listed attempts of a batch staged into the queues, once. Answered when all of it is there.
     * </pre>
     */
    public void publish(dev.fila.v1.PublishRequest request,
        io.grpc.stub.StreamObserver<dev.fila.v1.PublishResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getPublishMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Give up attempts that were not published.
     * </pre>
     */
    public void drop(dev.fila.v1.DropRequest request,
        io.grpc.stub.StreamObserver<dev.fila.v1.DropResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getDropMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * List the sinks that are remembered, by name, with what each has staged and which batch it published last.
     * </pre>
     */
    public void listSinks(dev.fila.v1.ListSinksRequest request,
        io.grpc.stub.StreamObserver<dev.fila.v1.ListSinksResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getListSinksMethod(), getCallOptions()), request, responseObserver);
    }
  }

  /**
   * A stub to allow clients to do synchronous rpc calls to service FilaSink.
   * <pre>
   * Stage, then publish once.
   * buf:lint:ignore SERVICE_SUFFIX
   * </pre>
   */
  public static final class FilaSinkBlockingV2Stub
      extends io.grpc.stub.AbstractBlockingStub<FilaSinkBlockingV2Stub> {
    private FilaSinkBlockingV2Stub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected FilaSinkBlockingV2Stub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new FilaSinkBlockingV2Stub(channel, callOptions);
    }

    /**
     * <pre>
     * Begin a run. What runs before it stage or publish from now on is refused, and what they staged is dropped.
     * </pre>
     */
    public dev.fila.v1.OpenSinkResponse openSink(dev.fila.v1.OpenSinkRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getOpenSinkMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Store messages aside, on the disk. A repeat with the same key and the same messages stores nothing.
     * </pre>
     */
    public dev.fila.v1.StageResponse stage(dev.fila.v1.StageRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getStageMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Put what the listed attempts of a batch staged into the queues, once. Answered when all of it is there.
     * </pre>
     */
    public dev.fila.v1.PublishResponse publish(dev.fila.v1.PublishRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getPublishMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Give up attempts that were not published.
     * </pre>
     */
    public dev.fila.v1.DropResponse drop(dev.fila.v1.DropRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getDropMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * List the sinks that are remembered, by name, with what each has staged and which batch it published last.
     * </pre>
     */
    public dev.fila.v1.ListSinksResponse listSinks(dev.fila.v1.ListSinksRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getListSinksMethod(), getCallOptions(), request);
    }
  }

  /**
   * A stub to allow clients to do limited synchronous rpc calls to service FilaSink.
   * <pre>
   * Stage, then publish once.
   * buf:lint:ignore SERVICE_SUFFIX
   * </pre>
   */
  public static final class FilaSinkBlockingStub
      extends io.grpc.stub.AbstractBlockingStub<FilaSinkBlockingStub> {
    private FilaSinkBlockingStub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected FilaSinkBlockingStub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new FilaSinkBlockingStub(channel, callOptions);
    }

    /**
     * <pre>
     * Begin a run. What runs before it stage or publish from now on is refused, and what they staged is dropped.
     * </pre>
     */
    public dev.fila.v1.OpenSinkResponse openSink(dev.fila.v1.OpenSinkRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getOpenSinkMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Store messages aside, on the disk. A repeat with the same key and the same messages stores nothing.
     * </pre>
     */
    public dev.fila.v1.StageResponse stage(dev.fila.v1.StageRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getStageMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Put what the listed attempts of a batch staged into the queues, once. Answered when all of it is there.
     * </pre>
     */
    public dev.fila.v1.PublishResponse publish(dev.fila.v1.PublishRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getPublishMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Give up attempts that were not published.
     * </pre>
     */
    public dev.fila.v1.DropResponse drop(dev.fila.v1.DropRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getDropMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * List the sinks that are remembered, by name, with what each has staged and which batch it published last.
     * </pre>
     */
    public dev.fila.v1.ListSinksResponse listSinks(dev.fila.v1.ListSinksRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getListSinksMethod(), getCallOptions(), request);
    }
  }

  /**
   * A stub to allow clients to do ListenableFuture-style rpc calls to service FilaSink.
   * <pre>
   * Stage, then publish once.
   * buf:lint:ignore SERVICE_SUFFIX
   * </pre>
   */
  public static final class FilaSinkFutureStub
      extends io.grpc.stub.AbstractFutureStub<FilaSinkFutureStub> {
    private FilaSinkFutureStub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected FilaSinkFutureStub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new FilaSinkFutureStub(channel, callOptions);
    }

    /**
     * <pre>
     * Begin a run. What runs before it stage or publish from now on is refused, and what they staged is dropped.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.fila.v1.OpenSinkResponse> openSink(
        dev.fila.v1.OpenSinkRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getOpenSinkMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Store messages aside, on the disk. A repeat with the same key and the same messages stores nothing.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.fila.v1.StageResponse> stage(
        dev.fila.v1.StageRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getStageMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Put what the listed attempts of a batch staged into the queues, once. Answered when all of it is there.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.fila.v1.PublishResponse> publish(
        dev.fila.v1.PublishRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getPublishMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Give up attempts that were not published.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.fila.v1.DropResponse> drop(
        dev.fila.v1.DropRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getDropMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * List the sinks that are remembered, by name, with what each has staged and which batch it published last.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.fila.v1.ListSinksResponse> listSinks(
        dev.fila.v1.ListSinksRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getListSinksMethod(), getCallOptions()), request);
    }
  }

  private static final int METHODID_OPEN_SINK = 0;
  private static final int METHODID_STAGE = 1;
  private static final int METHODID_PUBLISH = 2;
  private static final int METHODID_DROP = 3;
  private static final int METHODID_LIST_SINKS = 4;

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
        case METHODID_OPEN_SINK:
          serviceImpl.openSink((dev.fila.v1.OpenSinkRequest) request,
              (io.grpc.stub.StreamObserver<dev.fila.v1.OpenSinkResponse>) responseObserver);
          break;
        case METHODID_STAGE:
          serviceImpl.stage((dev.fila.v1.StageRequest) request,
              (io.grpc.stub.StreamObserver<dev.fila.v1.StageResponse>) responseObserver);
          break;
        case METHODID_PUBLISH:
          serviceImpl.publish((dev.fila.v1.PublishRequest) request,
              (io.grpc.stub.StreamObserver<dev.fila.v1.PublishResponse>) responseObserver);
          break;
        case METHODID_DROP:
          serviceImpl.drop((dev.fila.v1.DropRequest) request,
              (io.grpc.stub.StreamObserver<dev.fila.v1.DropResponse>) responseObserver);
          break;
        case METHODID_LIST_SINKS:
          serviceImpl.listSinks((dev.fila.v1.ListSinksRequest) request,
              (io.grpc.stub.StreamObserver<dev.fila.v1.ListSinksResponse>) responseObserver);
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
        default:
          throw new AssertionError();
      }
    }
  }

  public static final io.grpc.ServerServiceDefinition bindService(AsyncService service) {
    return io.grpc.ServerServiceDefinition.builder(getServiceDescriptor())
        .addMethod(
          getOpenSinkMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.fila.v1.OpenSinkRequest,
              dev.fila.v1.OpenSinkResponse>(
                service, METHODID_OPEN_SINK)))
        .addMethod(
          getStageMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.fila.v1.StageRequest,
              dev.fila.v1.StageResponse>(
                service, METHODID_STAGE)))
        .addMethod(
          getPublishMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.fila.v1.PublishRequest,
              dev.fila.v1.PublishResponse>(
                service, METHODID_PUBLISH)))
        .addMethod(
          getDropMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.fila.v1.DropRequest,
              dev.fila.v1.DropResponse>(
                service, METHODID_DROP)))
        .addMethod(
          getListSinksMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.fila.v1.ListSinksRequest,
              dev.fila.v1.ListSinksResponse>(
                service, METHODID_LIST_SINKS)))
        .build();
  }

  private static abstract class FilaSinkBaseDescriptorSupplier
      implements io.grpc.protobuf.ProtoFileDescriptorSupplier, io.grpc.protobuf.ProtoServiceDescriptorSupplier {
    FilaSinkBaseDescriptorSupplier() {}

    @java.lang.Override
    public com.google.protobuf.Descriptors.FileDescriptor getFileDescriptor() {
      return dev.fila.v1.SinkProto.getDescriptor();
    }

    @java.lang.Override
    public com.google.protobuf.Descriptors.ServiceDescriptor getServiceDescriptor() {
      return getFileDescriptor().findServiceByName("FilaSink");
    }
  }

  private static final class FilaSinkFileDescriptorSupplier
      extends FilaSinkBaseDescriptorSupplier {
    FilaSinkFileDescriptorSupplier() {}
  }

  private static final class FilaSinkMethodDescriptorSupplier
      extends FilaSinkBaseDescriptorSupplier
      implements io.grpc.protobuf.ProtoMethodDescriptorSupplier {
    private final java.lang.String methodName;

    FilaSinkMethodDescriptorSupplier(java.lang.String methodName) {
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
      synchronized (FilaSinkGrpc.class) {
        result = serviceDescriptor;
        if (result == null) {
          serviceDescriptor = result = io.grpc.ServiceDescriptor.newBuilder(SERVICE_NAME)
              .setSchemaDescriptor(new FilaSinkFileDescriptorSupplier())
              .addMethod(getOpenSinkMethod())
              .addMethod(getStageMethod())
              .addMethod(getPublishMethod())
              .addMethod(getDropMethod())
              .addMethod(getListSinksMethod())
              .build();
        }
      }
    }
    return result;
  }
}
