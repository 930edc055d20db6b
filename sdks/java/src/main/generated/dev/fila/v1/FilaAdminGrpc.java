package dev.fila.v1;

import static io.grpc.MethodDescriptor.generateFullMethodName;

/**
 * <pre>
 * Make, watch, change and clean up.
 * buf:lint:ignore SERVICE_SUFFIX
 * </pre>
 */
@io.grpc.stub.annotations.GrpcGenerated
public final class FilaAdminGrpc {

  private FilaAdminGrpc() {}

  public static final java.lang.String SERVICE_NAME = "fila.v1.FilaAdmin";

  // Static method descriptors that strictly reflect the proto.
  private static volatile io.grpc.MethodDescriptor<dev.fila.v1.CreateQueueRequest,
      dev.fila.v1.CreateQueueResponse> getCreateQueueMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "CreateQueue",
      requestType = dev.fila.v1.CreateQueueRequest.class,
      responseType = dev.fila.v1.CreateQueueResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.fila.v1.CreateQueueRequest,
      dev.fila.v1.CreateQueueResponse> getCreateQueueMethod() {
    io.grpc.MethodDescriptor<dev.fila.v1.CreateQueueRequest, dev.fila.v1.CreateQueueResponse> getCreateQueueMethod;
    if ((getCreateQueueMethod = FilaAdminGrpc.getCreateQueueMethod) == null) {
      synchronized (FilaAdminGrpc.class) {
        if ((getCreateQueueMethod = FilaAdminGrpc.getCreateQueueMethod) == null) {
          FilaAdminGrpc.getCreateQueueMethod = getCreateQueueMethod =
              io.grpc.MethodDescriptor.<dev.fila.v1.CreateQueueRequest, dev.fila.v1.CreateQueueResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "CreateQueue"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.CreateQueueRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.CreateQueueResponse.getDefaultInstance()))
              .setSchemaDescriptor(new FilaAdminMethodDescriptorSupplier("CreateQueue"))
              .build();
        }
      }
    }
    return getCreateQueueMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.fila.v1.GetQueueRequest,
      dev.fila.v1.GetQueueResponse> getGetQueueMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "GetQueue",
      requestType = dev.fila.v1.GetQueueRequest.class,
      responseType = dev.fila.v1.GetQueueResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.fila.v1.GetQueueRequest,
      dev.fila.v1.GetQueueResponse> getGetQueueMethod() {
    io.grpc.MethodDescriptor<dev.fila.v1.GetQueueRequest, dev.fila.v1.GetQueueResponse> getGetQueueMethod;
    if ((getGetQueueMethod = FilaAdminGrpc.getGetQueueMethod) == null) {
      synchronized (FilaAdminGrpc.class) {
        if ((getGetQueueMethod = FilaAdminGrpc.getGetQueueMethod) == null) {
          FilaAdminGrpc.getGetQueueMethod = getGetQueueMethod =
              io.grpc.MethodDescriptor.<dev.fila.v1.GetQueueRequest, dev.fila.v1.GetQueueResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "GetQueue"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.GetQueueRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.GetQueueResponse.getDefaultInstance()))
              .setSchemaDescriptor(new FilaAdminMethodDescriptorSupplier("GetQueue"))
              .build();
        }
      }
    }
    return getGetQueueMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.fila.v1.UpdateQueueRequest,
      dev.fila.v1.UpdateQueueResponse> getUpdateQueueMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "UpdateQueue",
      requestType = dev.fila.v1.UpdateQueueRequest.class,
      responseType = dev.fila.v1.UpdateQueueResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.fila.v1.UpdateQueueRequest,
      dev.fila.v1.UpdateQueueResponse> getUpdateQueueMethod() {
    io.grpc.MethodDescriptor<dev.fila.v1.UpdateQueueRequest, dev.fila.v1.UpdateQueueResponse> getUpdateQueueMethod;
    if ((getUpdateQueueMethod = FilaAdminGrpc.getUpdateQueueMethod) == null) {
      synchronized (FilaAdminGrpc.class) {
        if ((getUpdateQueueMethod = FilaAdminGrpc.getUpdateQueueMethod) == null) {
          FilaAdminGrpc.getUpdateQueueMethod = getUpdateQueueMethod =
              io.grpc.MethodDescriptor.<dev.fila.v1.UpdateQueueRequest, dev.fila.v1.UpdateQueueResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "UpdateQueue"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.UpdateQueueRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.UpdateQueueResponse.getDefaultInstance()))
              .setSchemaDescriptor(new FilaAdminMethodDescriptorSupplier("UpdateQueue"))
              .build();
        }
      }
    }
    return getUpdateQueueMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.fila.v1.DeleteQueueRequest,
      dev.fila.v1.DeleteQueueResponse> getDeleteQueueMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "DeleteQueue",
      requestType = dev.fila.v1.DeleteQueueRequest.class,
      responseType = dev.fila.v1.DeleteQueueResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.fila.v1.DeleteQueueRequest,
      dev.fila.v1.DeleteQueueResponse> getDeleteQueueMethod() {
    io.grpc.MethodDescriptor<dev.fila.v1.DeleteQueueRequest, dev.fila.v1.DeleteQueueResponse> getDeleteQueueMethod;
    if ((getDeleteQueueMethod = FilaAdminGrpc.getDeleteQueueMethod) == null) {
      synchronized (FilaAdminGrpc.class) {
        if ((getDeleteQueueMethod = FilaAdminGrpc.getDeleteQueueMethod) == null) {
          FilaAdminGrpc.getDeleteQueueMethod = getDeleteQueueMethod =
              io.grpc.MethodDescriptor.<dev.fila.v1.DeleteQueueRequest, dev.fila.v1.DeleteQueueResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "DeleteQueue"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.DeleteQueueRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.DeleteQueueResponse.getDefaultInstance()))
              .setSchemaDescriptor(new FilaAdminMethodDescriptorSupplier("DeleteQueue"))
              .build();
        }
      }
    }
    return getDeleteQueueMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.fila.v1.ListQueuesRequest,
      dev.fila.v1.ListQueuesResponse> getListQueuesMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "ListQueues",
      requestType = dev.fila.v1.ListQueuesRequest.class,
      responseType = dev.fila.v1.ListQueuesResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.fila.v1.ListQueuesRequest,
      dev.fila.v1.ListQueuesResponse> getListQueuesMethod() {
    io.grpc.MethodDescriptor<dev.fila.v1.ListQueuesRequest, dev.fila.v1.ListQueuesResponse> getListQueuesMethod;
    if ((getListQueuesMethod = FilaAdminGrpc.getListQueuesMethod) == null) {
      synchronized (FilaAdminGrpc.class) {
        if ((getListQueuesMethod = FilaAdminGrpc.getListQueuesMethod) == null) {
          FilaAdminGrpc.getListQueuesMethod = getListQueuesMethod =
              io.grpc.MethodDescriptor.<dev.fila.v1.ListQueuesRequest, dev.fila.v1.ListQueuesResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "ListQueues"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.ListQueuesRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.ListQueuesResponse.getDefaultInstance()))
              .setSchemaDescriptor(new FilaAdminMethodDescriptorSupplier("ListQueues"))
              .build();
        }
      }
    }
    return getListQueuesMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.fila.v1.PurgeQueueRequest,
      dev.fila.v1.PurgeQueueResponse> getPurgeQueueMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "PurgeQueue",
      requestType = dev.fila.v1.PurgeQueueRequest.class,
      responseType = dev.fila.v1.PurgeQueueResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.fila.v1.PurgeQueueRequest,
      dev.fila.v1.PurgeQueueResponse> getPurgeQueueMethod() {
    io.grpc.MethodDescriptor<dev.fila.v1.PurgeQueueRequest, dev.fila.v1.PurgeQueueResponse> getPurgeQueueMethod;
    if ((getPurgeQueueMethod = FilaAdminGrpc.getPurgeQueueMethod) == null) {
      synchronized (FilaAdminGrpc.class) {
        if ((getPurgeQueueMethod = FilaAdminGrpc.getPurgeQueueMethod) == null) {
          FilaAdminGrpc.getPurgeQueueMethod = getPurgeQueueMethod =
              io.grpc.MethodDescriptor.<dev.fila.v1.PurgeQueueRequest, dev.fila.v1.PurgeQueueResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "PurgeQueue"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.PurgeQueueRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.PurgeQueueResponse.getDefaultInstance()))
              .setSchemaDescriptor(new FilaAdminMethodDescriptorSupplier("PurgeQueue"))
              .build();
        }
      }
    }
    return getPurgeQueueMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.fila.v1.PeekMessagesRequest,
      dev.fila.v1.PeekMessagesResponse> getPeekMessagesMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "PeekMessages",
      requestType = dev.fila.v1.PeekMessagesRequest.class,
      responseType = dev.fila.v1.PeekMessagesResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.fila.v1.PeekMessagesRequest,
      dev.fila.v1.PeekMessagesResponse> getPeekMessagesMethod() {
    io.grpc.MethodDescriptor<dev.fila.v1.PeekMessagesRequest, dev.fila.v1.PeekMessagesResponse> getPeekMessagesMethod;
    if ((getPeekMessagesMethod = FilaAdminGrpc.getPeekMessagesMethod) == null) {
      synchronized (FilaAdminGrpc.class) {
        if ((getPeekMessagesMethod = FilaAdminGrpc.getPeekMessagesMethod) == null) {
          FilaAdminGrpc.getPeekMessagesMethod = getPeekMessagesMethod =
              io.grpc.MethodDescriptor.<dev.fila.v1.PeekMessagesRequest, dev.fila.v1.PeekMessagesResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "PeekMessages"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.PeekMessagesRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.PeekMessagesResponse.getDefaultInstance()))
              .setSchemaDescriptor(new FilaAdminMethodDescriptorSupplier("PeekMessages"))
              .build();
        }
      }
    }
    return getPeekMessagesMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.fila.v1.GetStatsRequest,
      dev.fila.v1.GetStatsResponse> getGetStatsMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "GetStats",
      requestType = dev.fila.v1.GetStatsRequest.class,
      responseType = dev.fila.v1.GetStatsResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.fila.v1.GetStatsRequest,
      dev.fila.v1.GetStatsResponse> getGetStatsMethod() {
    io.grpc.MethodDescriptor<dev.fila.v1.GetStatsRequest, dev.fila.v1.GetStatsResponse> getGetStatsMethod;
    if ((getGetStatsMethod = FilaAdminGrpc.getGetStatsMethod) == null) {
      synchronized (FilaAdminGrpc.class) {
        if ((getGetStatsMethod = FilaAdminGrpc.getGetStatsMethod) == null) {
          FilaAdminGrpc.getGetStatsMethod = getGetStatsMethod =
              io.grpc.MethodDescriptor.<dev.fila.v1.GetStatsRequest, dev.fila.v1.GetStatsResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "GetStats"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.GetStatsRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.GetStatsResponse.getDefaultInstance()))
              .setSchemaDescriptor(new FilaAdminMethodDescriptorSupplier("GetStats"))
              .build();
        }
      }
    }
    return getGetStatsMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.fila.v1.SetConfigRequest,
      dev.fila.v1.SetConfigResponse> getSetConfigMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "SetConfig",
      requestType = dev.fila.v1.SetConfigRequest.class,
      responseType = dev.fila.v1.SetConfigResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.fila.v1.SetConfigRequest,
      dev.fila.v1.SetConfigResponse> getSetConfigMethod() {
    io.grpc.MethodDescriptor<dev.fila.v1.SetConfigRequest, dev.fila.v1.SetConfigResponse> getSetConfigMethod;
    if ((getSetConfigMethod = FilaAdminGrpc.getSetConfigMethod) == null) {
      synchronized (FilaAdminGrpc.class) {
        if ((getSetConfigMethod = FilaAdminGrpc.getSetConfigMethod) == null) {
          FilaAdminGrpc.getSetConfigMethod = getSetConfigMethod =
              io.grpc.MethodDescriptor.<dev.fila.v1.SetConfigRequest, dev.fila.v1.SetConfigResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "SetConfig"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.SetConfigRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.SetConfigResponse.getDefaultInstance()))
              .setSchemaDescriptor(new FilaAdminMethodDescriptorSupplier("SetConfig"))
              .build();
        }
      }
    }
    return getSetConfigMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.fila.v1.GetConfigRequest,
      dev.fila.v1.GetConfigResponse> getGetConfigMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "GetConfig",
      requestType = dev.fila.v1.GetConfigRequest.class,
      responseType = dev.fila.v1.GetConfigResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.fila.v1.GetConfigRequest,
      dev.fila.v1.GetConfigResponse> getGetConfigMethod() {
    io.grpc.MethodDescriptor<dev.fila.v1.GetConfigRequest, dev.fila.v1.GetConfigResponse> getGetConfigMethod;
    if ((getGetConfigMethod = FilaAdminGrpc.getGetConfigMethod) == null) {
      synchronized (FilaAdminGrpc.class) {
        if ((getGetConfigMethod = FilaAdminGrpc.getGetConfigMethod) == null) {
          FilaAdminGrpc.getGetConfigMethod = getGetConfigMethod =
              io.grpc.MethodDescriptor.<dev.fila.v1.GetConfigRequest, dev.fila.v1.GetConfigResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "GetConfig"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.GetConfigRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.GetConfigResponse.getDefaultInstance()))
              .setSchemaDescriptor(new FilaAdminMethodDescriptorSupplier("GetConfig"))
              .build();
        }
      }
    }
    return getGetConfigMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.fila.v1.ListConfigRequest,
      dev.fila.v1.ListConfigResponse> getListConfigMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "ListConfig",
      requestType = dev.fila.v1.ListConfigRequest.class,
      responseType = dev.fila.v1.ListConfigResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.fila.v1.ListConfigRequest,
      dev.fila.v1.ListConfigResponse> getListConfigMethod() {
    io.grpc.MethodDescriptor<dev.fila.v1.ListConfigRequest, dev.fila.v1.ListConfigResponse> getListConfigMethod;
    if ((getListConfigMethod = FilaAdminGrpc.getListConfigMethod) == null) {
      synchronized (FilaAdminGrpc.class) {
        if ((getListConfigMethod = FilaAdminGrpc.getListConfigMethod) == null) {
          FilaAdminGrpc.getListConfigMethod = getListConfigMethod =
              io.grpc.MethodDescriptor.<dev.fila.v1.ListConfigRequest, dev.fila.v1.ListConfigResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "ListConfig"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.ListConfigRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.ListConfigResponse.getDefaultInstance()))
              .setSchemaDescriptor(new FilaAdminMethodDescriptorSupplier("ListConfig"))
              .build();
        }
      }
    }
    return getListConfigMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.fila.v1.RedriveRequest,
      dev.fila.v1.RedriveResponse> getRedriveMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "Redrive",
      requestType = dev.fila.v1.RedriveRequest.class,
      responseType = dev.fila.v1.RedriveResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.fila.v1.RedriveRequest,
      dev.fila.v1.RedriveResponse> getRedriveMethod() {
    io.grpc.MethodDescriptor<dev.fila.v1.RedriveRequest, dev.fila.v1.RedriveResponse> getRedriveMethod;
    if ((getRedriveMethod = FilaAdminGrpc.getRedriveMethod) == null) {
      synchronized (FilaAdminGrpc.class) {
        if ((getRedriveMethod = FilaAdminGrpc.getRedriveMethod) == null) {
          FilaAdminGrpc.getRedriveMethod = getRedriveMethod =
              io.grpc.MethodDescriptor.<dev.fila.v1.RedriveRequest, dev.fila.v1.RedriveResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "Redrive"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.RedriveRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.RedriveResponse.getDefaultInstance()))
              .setSchemaDescriptor(new FilaAdminMethodDescriptorSupplier("Redrive"))
              .build();
        }
      }
    }
    return getRedriveMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.fila.v1.CreateChannelRequest,
      dev.fila.v1.CreateChannelResponse> getCreateChannelMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "CreateChannel",
      requestType = dev.fila.v1.CreateChannelRequest.class,
      responseType = dev.fila.v1.CreateChannelResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.fila.v1.CreateChannelRequest,
      dev.fila.v1.CreateChannelResponse> getCreateChannelMethod() {
    io.grpc.MethodDescriptor<dev.fila.v1.CreateChannelRequest, dev.fila.v1.CreateChannelResponse> getCreateChannelMethod;
    if ((getCreateChannelMethod = FilaAdminGrpc.getCreateChannelMethod) == null) {
      synchronized (FilaAdminGrpc.class) {
        if ((getCreateChannelMethod = FilaAdminGrpc.getCreateChannelMethod) == null) {
          FilaAdminGrpc.getCreateChannelMethod = getCreateChannelMethod =
              io.grpc.MethodDescriptor.<dev.fila.v1.CreateChannelRequest, dev.fila.v1.CreateChannelResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "CreateChannel"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.CreateChannelRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.CreateChannelResponse.getDefaultInstance()))
              .setSchemaDescriptor(new FilaAdminMethodDescriptorSupplier("CreateChannel"))
              .build();
        }
      }
    }
    return getCreateChannelMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.fila.v1.DeleteChannelRequest,
      dev.fila.v1.DeleteChannelResponse> getDeleteChannelMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "DeleteChannel",
      requestType = dev.fila.v1.DeleteChannelRequest.class,
      responseType = dev.fila.v1.DeleteChannelResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.fila.v1.DeleteChannelRequest,
      dev.fila.v1.DeleteChannelResponse> getDeleteChannelMethod() {
    io.grpc.MethodDescriptor<dev.fila.v1.DeleteChannelRequest, dev.fila.v1.DeleteChannelResponse> getDeleteChannelMethod;
    if ((getDeleteChannelMethod = FilaAdminGrpc.getDeleteChannelMethod) == null) {
      synchronized (FilaAdminGrpc.class) {
        if ((getDeleteChannelMethod = FilaAdminGrpc.getDeleteChannelMethod) == null) {
          FilaAdminGrpc.getDeleteChannelMethod = getDeleteChannelMethod =
              io.grpc.MethodDescriptor.<dev.fila.v1.DeleteChannelRequest, dev.fila.v1.DeleteChannelResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "DeleteChannel"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.DeleteChannelRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.DeleteChannelResponse.getDefaultInstance()))
              .setSchemaDescriptor(new FilaAdminMethodDescriptorSupplier("DeleteChannel"))
              .build();
        }
      }
    }
    return getDeleteChannelMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.fila.v1.ListChannelsRequest,
      dev.fila.v1.ListChannelsResponse> getListChannelsMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "ListChannels",
      requestType = dev.fila.v1.ListChannelsRequest.class,
      responseType = dev.fila.v1.ListChannelsResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.fila.v1.ListChannelsRequest,
      dev.fila.v1.ListChannelsResponse> getListChannelsMethod() {
    io.grpc.MethodDescriptor<dev.fila.v1.ListChannelsRequest, dev.fila.v1.ListChannelsResponse> getListChannelsMethod;
    if ((getListChannelsMethod = FilaAdminGrpc.getListChannelsMethod) == null) {
      synchronized (FilaAdminGrpc.class) {
        if ((getListChannelsMethod = FilaAdminGrpc.getListChannelsMethod) == null) {
          FilaAdminGrpc.getListChannelsMethod = getListChannelsMethod =
              io.grpc.MethodDescriptor.<dev.fila.v1.ListChannelsRequest, dev.fila.v1.ListChannelsResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "ListChannels"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.ListChannelsRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.ListChannelsResponse.getDefaultInstance()))
              .setSchemaDescriptor(new FilaAdminMethodDescriptorSupplier("ListChannels"))
              .build();
        }
      }
    }
    return getListChannelsMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.fila.v1.SeekChannelRequest,
      dev.fila.v1.SeekChannelResponse> getSeekChannelMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "SeekChannel",
      requestType = dev.fila.v1.SeekChannelRequest.class,
      responseType = dev.fila.v1.SeekChannelResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.fila.v1.SeekChannelRequest,
      dev.fila.v1.SeekChannelResponse> getSeekChannelMethod() {
    io.grpc.MethodDescriptor<dev.fila.v1.SeekChannelRequest, dev.fila.v1.SeekChannelResponse> getSeekChannelMethod;
    if ((getSeekChannelMethod = FilaAdminGrpc.getSeekChannelMethod) == null) {
      synchronized (FilaAdminGrpc.class) {
        if ((getSeekChannelMethod = FilaAdminGrpc.getSeekChannelMethod) == null) {
          FilaAdminGrpc.getSeekChannelMethod = getSeekChannelMethod =
              io.grpc.MethodDescriptor.<dev.fila.v1.SeekChannelRequest, dev.fila.v1.SeekChannelResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "SeekChannel"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.SeekChannelRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.SeekChannelResponse.getDefaultInstance()))
              .setSchemaDescriptor(new FilaAdminMethodDescriptorSupplier("SeekChannel"))
              .build();
        }
      }
    }
    return getSeekChannelMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.fila.v1.PurgeChannelRequest,
      dev.fila.v1.PurgeChannelResponse> getPurgeChannelMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "PurgeChannel",
      requestType = dev.fila.v1.PurgeChannelRequest.class,
      responseType = dev.fila.v1.PurgeChannelResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.fila.v1.PurgeChannelRequest,
      dev.fila.v1.PurgeChannelResponse> getPurgeChannelMethod() {
    io.grpc.MethodDescriptor<dev.fila.v1.PurgeChannelRequest, dev.fila.v1.PurgeChannelResponse> getPurgeChannelMethod;
    if ((getPurgeChannelMethod = FilaAdminGrpc.getPurgeChannelMethod) == null) {
      synchronized (FilaAdminGrpc.class) {
        if ((getPurgeChannelMethod = FilaAdminGrpc.getPurgeChannelMethod) == null) {
          FilaAdminGrpc.getPurgeChannelMethod = getPurgeChannelMethod =
              io.grpc.MethodDescriptor.<dev.fila.v1.PurgeChannelRequest, dev.fila.v1.PurgeChannelResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "PurgeChannel"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.PurgeChannelRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.PurgeChannelResponse.getDefaultInstance()))
              .setSchemaDescriptor(new FilaAdminMethodDescriptorSupplier("PurgeChannel"))
              .build();
        }
      }
    }
    return getPurgeChannelMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.fila.v1.ReadLogRequest,
      dev.fila.v1.ReadLogResponse> getReadLogMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "ReadLog",
      requestType = dev.fila.v1.ReadLogRequest.class,
      responseType = dev.fila.v1.ReadLogResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.SERVER_STREAMING)
  public static io.grpc.MethodDescriptor<dev.fila.v1.ReadLogRequest,
      dev.fila.v1.ReadLogResponse> getReadLogMethod() {
    io.grpc.MethodDescriptor<dev.fila.v1.ReadLogRequest, dev.fila.v1.ReadLogResponse> getReadLogMethod;
    if ((getReadLogMethod = FilaAdminGrpc.getReadLogMethod) == null) {
      synchronized (FilaAdminGrpc.class) {
        if ((getReadLogMethod = FilaAdminGrpc.getReadLogMethod) == null) {
          FilaAdminGrpc.getReadLogMethod = getReadLogMethod =
              io.grpc.MethodDescriptor.<dev.fila.v1.ReadLogRequest, dev.fila.v1.ReadLogResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.SERVER_STREAMING)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "ReadLog"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.ReadLogRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.ReadLogResponse.getDefaultInstance()))
              .setSchemaDescriptor(new FilaAdminMethodDescriptorSupplier("ReadLog"))
              .build();
        }
      }
    }
    return getReadLogMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.fila.v1.SetKeyPolicyRequest,
      dev.fila.v1.SetKeyPolicyResponse> getSetKeyPolicyMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "SetKeyPolicy",
      requestType = dev.fila.v1.SetKeyPolicyRequest.class,
      responseType = dev.fila.v1.SetKeyPolicyResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.fila.v1.SetKeyPolicyRequest,
      dev.fila.v1.SetKeyPolicyResponse> getSetKeyPolicyMethod() {
    io.grpc.MethodDescriptor<dev.fila.v1.SetKeyPolicyRequest, dev.fila.v1.SetKeyPolicyResponse> getSetKeyPolicyMethod;
    if ((getSetKeyPolicyMethod = FilaAdminGrpc.getSetKeyPolicyMethod) == null) {
      synchronized (FilaAdminGrpc.class) {
        if ((getSetKeyPolicyMethod = FilaAdminGrpc.getSetKeyPolicyMethod) == null) {
          FilaAdminGrpc.getSetKeyPolicyMethod = getSetKeyPolicyMethod =
              io.grpc.MethodDescriptor.<dev.fila.v1.SetKeyPolicyRequest, dev.fila.v1.SetKeyPolicyResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "SetKeyPolicy"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.SetKeyPolicyRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.SetKeyPolicyResponse.getDefaultInstance()))
              .setSchemaDescriptor(new FilaAdminMethodDescriptorSupplier("SetKeyPolicy"))
              .build();
        }
      }
    }
    return getSetKeyPolicyMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.fila.v1.PreviewKeyPolicyRequest,
      dev.fila.v1.PreviewKeyPolicyResponse> getPreviewKeyPolicyMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "PreviewKeyPolicy",
      requestType = dev.fila.v1.PreviewKeyPolicyRequest.class,
      responseType = dev.fila.v1.PreviewKeyPolicyResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.fila.v1.PreviewKeyPolicyRequest,
      dev.fila.v1.PreviewKeyPolicyResponse> getPreviewKeyPolicyMethod() {
    io.grpc.MethodDescriptor<dev.fila.v1.PreviewKeyPolicyRequest, dev.fila.v1.PreviewKeyPolicyResponse> getPreviewKeyPolicyMethod;
    if ((getPreviewKeyPolicyMethod = FilaAdminGrpc.getPreviewKeyPolicyMethod) == null) {
      synchronized (FilaAdminGrpc.class) {
        if ((getPreviewKeyPolicyMethod = FilaAdminGrpc.getPreviewKeyPolicyMethod) == null) {
          FilaAdminGrpc.getPreviewKeyPolicyMethod = getPreviewKeyPolicyMethod =
              io.grpc.MethodDescriptor.<dev.fila.v1.PreviewKeyPolicyRequest, dev.fila.v1.PreviewKeyPolicyResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "PreviewKeyPolicy"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.PreviewKeyPolicyRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.PreviewKeyPolicyResponse.getDefaultInstance()))
              .setSchemaDescriptor(new FilaAdminMethodDescriptorSupplier("PreviewKeyPolicy"))
              .build();
        }
      }
    }
    return getPreviewKeyPolicyMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.fila.v1.ExplainKeyRequest,
      dev.fila.v1.ExplainKeyResponse> getExplainKeyMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "ExplainKey",
      requestType = dev.fila.v1.ExplainKeyRequest.class,
      responseType = dev.fila.v1.ExplainKeyResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.fila.v1.ExplainKeyRequest,
      dev.fila.v1.ExplainKeyResponse> getExplainKeyMethod() {
    io.grpc.MethodDescriptor<dev.fila.v1.ExplainKeyRequest, dev.fila.v1.ExplainKeyResponse> getExplainKeyMethod;
    if ((getExplainKeyMethod = FilaAdminGrpc.getExplainKeyMethod) == null) {
      synchronized (FilaAdminGrpc.class) {
        if ((getExplainKeyMethod = FilaAdminGrpc.getExplainKeyMethod) == null) {
          FilaAdminGrpc.getExplainKeyMethod = getExplainKeyMethod =
              io.grpc.MethodDescriptor.<dev.fila.v1.ExplainKeyRequest, dev.fila.v1.ExplainKeyResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "ExplainKey"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.ExplainKeyRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.ExplainKeyResponse.getDefaultInstance()))
              .setSchemaDescriptor(new FilaAdminMethodDescriptorSupplier("ExplainKey"))
              .build();
        }
      }
    }
    return getExplainKeyMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.fila.v1.ListConsumersRequest,
      dev.fila.v1.ListConsumersResponse> getListConsumersMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "ListConsumers",
      requestType = dev.fila.v1.ListConsumersRequest.class,
      responseType = dev.fila.v1.ListConsumersResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.fila.v1.ListConsumersRequest,
      dev.fila.v1.ListConsumersResponse> getListConsumersMethod() {
    io.grpc.MethodDescriptor<dev.fila.v1.ListConsumersRequest, dev.fila.v1.ListConsumersResponse> getListConsumersMethod;
    if ((getListConsumersMethod = FilaAdminGrpc.getListConsumersMethod) == null) {
      synchronized (FilaAdminGrpc.class) {
        if ((getListConsumersMethod = FilaAdminGrpc.getListConsumersMethod) == null) {
          FilaAdminGrpc.getListConsumersMethod = getListConsumersMethod =
              io.grpc.MethodDescriptor.<dev.fila.v1.ListConsumersRequest, dev.fila.v1.ListConsumersResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "ListConsumers"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.ListConsumersRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.ListConsumersResponse.getDefaultInstance()))
              .setSchemaDescriptor(new FilaAdminMethodDescriptorSupplier("ListConsumers"))
              .build();
        }
      }
    }
    return getListConsumersMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.fila.v1.GetStatusRequest,
      dev.fila.v1.GetStatusResponse> getGetStatusMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "GetStatus",
      requestType = dev.fila.v1.GetStatusRequest.class,
      responseType = dev.fila.v1.GetStatusResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.fila.v1.GetStatusRequest,
      dev.fila.v1.GetStatusResponse> getGetStatusMethod() {
    io.grpc.MethodDescriptor<dev.fila.v1.GetStatusRequest, dev.fila.v1.GetStatusResponse> getGetStatusMethod;
    if ((getGetStatusMethod = FilaAdminGrpc.getGetStatusMethod) == null) {
      synchronized (FilaAdminGrpc.class) {
        if ((getGetStatusMethod = FilaAdminGrpc.getGetStatusMethod) == null) {
          FilaAdminGrpc.getGetStatusMethod = getGetStatusMethod =
              io.grpc.MethodDescriptor.<dev.fila.v1.GetStatusRequest, dev.fila.v1.GetStatusResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "GetStatus"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.GetStatusRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.GetStatusResponse.getDefaultInstance()))
              .setSchemaDescriptor(new FilaAdminMethodDescriptorSupplier("GetStatus"))
              .build();
        }
      }
    }
    return getGetStatusMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.fila.v1.WatchEventsRequest,
      dev.fila.v1.WatchEventsResponse> getWatchEventsMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "WatchEvents",
      requestType = dev.fila.v1.WatchEventsRequest.class,
      responseType = dev.fila.v1.WatchEventsResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.SERVER_STREAMING)
  public static io.grpc.MethodDescriptor<dev.fila.v1.WatchEventsRequest,
      dev.fila.v1.WatchEventsResponse> getWatchEventsMethod() {
    io.grpc.MethodDescriptor<dev.fila.v1.WatchEventsRequest, dev.fila.v1.WatchEventsResponse> getWatchEventsMethod;
    if ((getWatchEventsMethod = FilaAdminGrpc.getWatchEventsMethod) == null) {
      synchronized (FilaAdminGrpc.class) {
        if ((getWatchEventsMethod = FilaAdminGrpc.getWatchEventsMethod) == null) {
          FilaAdminGrpc.getWatchEventsMethod = getWatchEventsMethod =
              io.grpc.MethodDescriptor.<dev.fila.v1.WatchEventsRequest, dev.fila.v1.WatchEventsResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.SERVER_STREAMING)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "WatchEvents"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.WatchEventsRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.WatchEventsResponse.getDefaultInstance()))
              .setSchemaDescriptor(new FilaAdminMethodDescriptorSupplier("WatchEvents"))
              .build();
        }
      }
    }
    return getWatchEventsMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.fila.v1.ListLateRequest,
      dev.fila.v1.ListLateResponse> getListLateMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "ListLate",
      requestType = dev.fila.v1.ListLateRequest.class,
      responseType = dev.fila.v1.ListLateResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.fila.v1.ListLateRequest,
      dev.fila.v1.ListLateResponse> getListLateMethod() {
    io.grpc.MethodDescriptor<dev.fila.v1.ListLateRequest, dev.fila.v1.ListLateResponse> getListLateMethod;
    if ((getListLateMethod = FilaAdminGrpc.getListLateMethod) == null) {
      synchronized (FilaAdminGrpc.class) {
        if ((getListLateMethod = FilaAdminGrpc.getListLateMethod) == null) {
          FilaAdminGrpc.getListLateMethod = getListLateMethod =
              io.grpc.MethodDescriptor.<dev.fila.v1.ListLateRequest, dev.fila.v1.ListLateResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "ListLate"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.ListLateRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.ListLateResponse.getDefaultInstance()))
              .setSchemaDescriptor(new FilaAdminMethodDescriptorSupplier("ListLate"))
              .build();
        }
      }
    }
    return getListLateMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.fila.v1.ListKeyPoliciesRequest,
      dev.fila.v1.ListKeyPoliciesResponse> getListKeyPoliciesMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "ListKeyPolicies",
      requestType = dev.fila.v1.ListKeyPoliciesRequest.class,
      responseType = dev.fila.v1.ListKeyPoliciesResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.fila.v1.ListKeyPoliciesRequest,
      dev.fila.v1.ListKeyPoliciesResponse> getListKeyPoliciesMethod() {
    io.grpc.MethodDescriptor<dev.fila.v1.ListKeyPoliciesRequest, dev.fila.v1.ListKeyPoliciesResponse> getListKeyPoliciesMethod;
    if ((getListKeyPoliciesMethod = FilaAdminGrpc.getListKeyPoliciesMethod) == null) {
      synchronized (FilaAdminGrpc.class) {
        if ((getListKeyPoliciesMethod = FilaAdminGrpc.getListKeyPoliciesMethod) == null) {
          FilaAdminGrpc.getListKeyPoliciesMethod = getListKeyPoliciesMethod =
              io.grpc.MethodDescriptor.<dev.fila.v1.ListKeyPoliciesRequest, dev.fila.v1.ListKeyPoliciesResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "ListKeyPolicies"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.ListKeyPoliciesRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.ListKeyPoliciesResponse.getDefaultInstance()))
              .setSchemaDescriptor(new FilaAdminMethodDescriptorSupplier("ListKeyPolicies"))
              .build();
        }
      }
    }
    return getListKeyPoliciesMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.fila.v1.DropDeadLettersRequest,
      dev.fila.v1.DropDeadLettersResponse> getDropDeadLettersMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "DropDeadLetters",
      requestType = dev.fila.v1.DropDeadLettersRequest.class,
      responseType = dev.fila.v1.DropDeadLettersResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.fila.v1.DropDeadLettersRequest,
      dev.fila.v1.DropDeadLettersResponse> getDropDeadLettersMethod() {
    io.grpc.MethodDescriptor<dev.fila.v1.DropDeadLettersRequest, dev.fila.v1.DropDeadLettersResponse> getDropDeadLettersMethod;
    if ((getDropDeadLettersMethod = FilaAdminGrpc.getDropDeadLettersMethod) == null) {
      synchronized (FilaAdminGrpc.class) {
        if ((getDropDeadLettersMethod = FilaAdminGrpc.getDropDeadLettersMethod) == null) {
          FilaAdminGrpc.getDropDeadLettersMethod = getDropDeadLettersMethod =
              io.grpc.MethodDescriptor.<dev.fila.v1.DropDeadLettersRequest, dev.fila.v1.DropDeadLettersResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "DropDeadLetters"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.DropDeadLettersRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.DropDeadLettersResponse.getDefaultInstance()))
              .setSchemaDescriptor(new FilaAdminMethodDescriptorSupplier("DropDeadLetters"))
              .build();
        }
      }
    }
    return getDropDeadLettersMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.fila.v1.FindKeysRequest,
      dev.fila.v1.FindKeysResponse> getFindKeysMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "FindKeys",
      requestType = dev.fila.v1.FindKeysRequest.class,
      responseType = dev.fila.v1.FindKeysResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.fila.v1.FindKeysRequest,
      dev.fila.v1.FindKeysResponse> getFindKeysMethod() {
    io.grpc.MethodDescriptor<dev.fila.v1.FindKeysRequest, dev.fila.v1.FindKeysResponse> getFindKeysMethod;
    if ((getFindKeysMethod = FilaAdminGrpc.getFindKeysMethod) == null) {
      synchronized (FilaAdminGrpc.class) {
        if ((getFindKeysMethod = FilaAdminGrpc.getFindKeysMethod) == null) {
          FilaAdminGrpc.getFindKeysMethod = getFindKeysMethod =
              io.grpc.MethodDescriptor.<dev.fila.v1.FindKeysRequest, dev.fila.v1.FindKeysResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "FindKeys"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.FindKeysRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.FindKeysResponse.getDefaultInstance()))
              .setSchemaDescriptor(new FilaAdminMethodDescriptorSupplier("FindKeys"))
              .build();
        }
      }
    }
    return getFindKeysMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.fila.v1.WatchStatsRequest,
      dev.fila.v1.WatchStatsResponse> getWatchStatsMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "WatchStats",
      requestType = dev.fila.v1.WatchStatsRequest.class,
      responseType = dev.fila.v1.WatchStatsResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.SERVER_STREAMING)
  public static io.grpc.MethodDescriptor<dev.fila.v1.WatchStatsRequest,
      dev.fila.v1.WatchStatsResponse> getWatchStatsMethod() {
    io.grpc.MethodDescriptor<dev.fila.v1.WatchStatsRequest, dev.fila.v1.WatchStatsResponse> getWatchStatsMethod;
    if ((getWatchStatsMethod = FilaAdminGrpc.getWatchStatsMethod) == null) {
      synchronized (FilaAdminGrpc.class) {
        if ((getWatchStatsMethod = FilaAdminGrpc.getWatchStatsMethod) == null) {
          FilaAdminGrpc.getWatchStatsMethod = getWatchStatsMethod =
              io.grpc.MethodDescriptor.<dev.fila.v1.WatchStatsRequest, dev.fila.v1.WatchStatsResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.SERVER_STREAMING)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "WatchStats"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.WatchStatsRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.WatchStatsResponse.getDefaultInstance()))
              .setSchemaDescriptor(new FilaAdminMethodDescriptorSupplier("WatchStats"))
              .build();
        }
      }
    }
    return getWatchStatsMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.fila.v1.GetSeriesRequest,
      dev.fila.v1.GetSeriesResponse> getGetSeriesMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "GetSeries",
      requestType = dev.fila.v1.GetSeriesRequest.class,
      responseType = dev.fila.v1.GetSeriesResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.fila.v1.GetSeriesRequest,
      dev.fila.v1.GetSeriesResponse> getGetSeriesMethod() {
    io.grpc.MethodDescriptor<dev.fila.v1.GetSeriesRequest, dev.fila.v1.GetSeriesResponse> getGetSeriesMethod;
    if ((getGetSeriesMethod = FilaAdminGrpc.getGetSeriesMethod) == null) {
      synchronized (FilaAdminGrpc.class) {
        if ((getGetSeriesMethod = FilaAdminGrpc.getGetSeriesMethod) == null) {
          FilaAdminGrpc.getGetSeriesMethod = getGetSeriesMethod =
              io.grpc.MethodDescriptor.<dev.fila.v1.GetSeriesRequest, dev.fila.v1.GetSeriesResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "GetSeries"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.GetSeriesRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.GetSeriesResponse.getDefaultInstance()))
              .setSchemaDescriptor(new FilaAdminMethodDescriptorSupplier("GetSeries"))
              .build();
        }
      }
    }
    return getGetSeriesMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.fila.v1.ListQueueVersionsRequest,
      dev.fila.v1.ListQueueVersionsResponse> getListQueueVersionsMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "ListQueueVersions",
      requestType = dev.fila.v1.ListQueueVersionsRequest.class,
      responseType = dev.fila.v1.ListQueueVersionsResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.fila.v1.ListQueueVersionsRequest,
      dev.fila.v1.ListQueueVersionsResponse> getListQueueVersionsMethod() {
    io.grpc.MethodDescriptor<dev.fila.v1.ListQueueVersionsRequest, dev.fila.v1.ListQueueVersionsResponse> getListQueueVersionsMethod;
    if ((getListQueueVersionsMethod = FilaAdminGrpc.getListQueueVersionsMethod) == null) {
      synchronized (FilaAdminGrpc.class) {
        if ((getListQueueVersionsMethod = FilaAdminGrpc.getListQueueVersionsMethod) == null) {
          FilaAdminGrpc.getListQueueVersionsMethod = getListQueueVersionsMethod =
              io.grpc.MethodDescriptor.<dev.fila.v1.ListQueueVersionsRequest, dev.fila.v1.ListQueueVersionsResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "ListQueueVersions"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.ListQueueVersionsRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.ListQueueVersionsResponse.getDefaultInstance()))
              .setSchemaDescriptor(new FilaAdminMethodDescriptorSupplier("ListQueueVersions"))
              .build();
        }
      }
    }
    return getListQueueVersionsMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.fila.v1.GetQueueVersionRequest,
      dev.fila.v1.GetQueueVersionResponse> getGetQueueVersionMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "GetQueueVersion",
      requestType = dev.fila.v1.GetQueueVersionRequest.class,
      responseType = dev.fila.v1.GetQueueVersionResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.fila.v1.GetQueueVersionRequest,
      dev.fila.v1.GetQueueVersionResponse> getGetQueueVersionMethod() {
    io.grpc.MethodDescriptor<dev.fila.v1.GetQueueVersionRequest, dev.fila.v1.GetQueueVersionResponse> getGetQueueVersionMethod;
    if ((getGetQueueVersionMethod = FilaAdminGrpc.getGetQueueVersionMethod) == null) {
      synchronized (FilaAdminGrpc.class) {
        if ((getGetQueueVersionMethod = FilaAdminGrpc.getGetQueueVersionMethod) == null) {
          FilaAdminGrpc.getGetQueueVersionMethod = getGetQueueVersionMethod =
              io.grpc.MethodDescriptor.<dev.fila.v1.GetQueueVersionRequest, dev.fila.v1.GetQueueVersionResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "GetQueueVersion"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.GetQueueVersionRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.GetQueueVersionResponse.getDefaultInstance()))
              .setSchemaDescriptor(new FilaAdminMethodDescriptorSupplier("GetQueueVersion"))
              .build();
        }
      }
    }
    return getGetQueueVersionMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.fila.v1.StartOperationRequest,
      dev.fila.v1.StartOperationResponse> getStartOperationMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "StartOperation",
      requestType = dev.fila.v1.StartOperationRequest.class,
      responseType = dev.fila.v1.StartOperationResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.fila.v1.StartOperationRequest,
      dev.fila.v1.StartOperationResponse> getStartOperationMethod() {
    io.grpc.MethodDescriptor<dev.fila.v1.StartOperationRequest, dev.fila.v1.StartOperationResponse> getStartOperationMethod;
    if ((getStartOperationMethod = FilaAdminGrpc.getStartOperationMethod) == null) {
      synchronized (FilaAdminGrpc.class) {
        if ((getStartOperationMethod = FilaAdminGrpc.getStartOperationMethod) == null) {
          FilaAdminGrpc.getStartOperationMethod = getStartOperationMethod =
              io.grpc.MethodDescriptor.<dev.fila.v1.StartOperationRequest, dev.fila.v1.StartOperationResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "StartOperation"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.StartOperationRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.StartOperationResponse.getDefaultInstance()))
              .setSchemaDescriptor(new FilaAdminMethodDescriptorSupplier("StartOperation"))
              .build();
        }
      }
    }
    return getStartOperationMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.fila.v1.WatchOperationRequest,
      dev.fila.v1.WatchOperationResponse> getWatchOperationMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "WatchOperation",
      requestType = dev.fila.v1.WatchOperationRequest.class,
      responseType = dev.fila.v1.WatchOperationResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.SERVER_STREAMING)
  public static io.grpc.MethodDescriptor<dev.fila.v1.WatchOperationRequest,
      dev.fila.v1.WatchOperationResponse> getWatchOperationMethod() {
    io.grpc.MethodDescriptor<dev.fila.v1.WatchOperationRequest, dev.fila.v1.WatchOperationResponse> getWatchOperationMethod;
    if ((getWatchOperationMethod = FilaAdminGrpc.getWatchOperationMethod) == null) {
      synchronized (FilaAdminGrpc.class) {
        if ((getWatchOperationMethod = FilaAdminGrpc.getWatchOperationMethod) == null) {
          FilaAdminGrpc.getWatchOperationMethod = getWatchOperationMethod =
              io.grpc.MethodDescriptor.<dev.fila.v1.WatchOperationRequest, dev.fila.v1.WatchOperationResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.SERVER_STREAMING)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "WatchOperation"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.WatchOperationRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.WatchOperationResponse.getDefaultInstance()))
              .setSchemaDescriptor(new FilaAdminMethodDescriptorSupplier("WatchOperation"))
              .build();
        }
      }
    }
    return getWatchOperationMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.fila.v1.ListOperationsRequest,
      dev.fila.v1.ListOperationsResponse> getListOperationsMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "ListOperations",
      requestType = dev.fila.v1.ListOperationsRequest.class,
      responseType = dev.fila.v1.ListOperationsResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.fila.v1.ListOperationsRequest,
      dev.fila.v1.ListOperationsResponse> getListOperationsMethod() {
    io.grpc.MethodDescriptor<dev.fila.v1.ListOperationsRequest, dev.fila.v1.ListOperationsResponse> getListOperationsMethod;
    if ((getListOperationsMethod = FilaAdminGrpc.getListOperationsMethod) == null) {
      synchronized (FilaAdminGrpc.class) {
        if ((getListOperationsMethod = FilaAdminGrpc.getListOperationsMethod) == null) {
          FilaAdminGrpc.getListOperationsMethod = getListOperationsMethod =
              io.grpc.MethodDescriptor.<dev.fila.v1.ListOperationsRequest, dev.fila.v1.ListOperationsResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "ListOperations"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.ListOperationsRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.ListOperationsResponse.getDefaultInstance()))
              .setSchemaDescriptor(new FilaAdminMethodDescriptorSupplier("ListOperations"))
              .build();
        }
      }
    }
    return getListOperationsMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.fila.v1.CancelOperationRequest,
      dev.fila.v1.CancelOperationResponse> getCancelOperationMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "CancelOperation",
      requestType = dev.fila.v1.CancelOperationRequest.class,
      responseType = dev.fila.v1.CancelOperationResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.fila.v1.CancelOperationRequest,
      dev.fila.v1.CancelOperationResponse> getCancelOperationMethod() {
    io.grpc.MethodDescriptor<dev.fila.v1.CancelOperationRequest, dev.fila.v1.CancelOperationResponse> getCancelOperationMethod;
    if ((getCancelOperationMethod = FilaAdminGrpc.getCancelOperationMethod) == null) {
      synchronized (FilaAdminGrpc.class) {
        if ((getCancelOperationMethod = FilaAdminGrpc.getCancelOperationMethod) == null) {
          FilaAdminGrpc.getCancelOperationMethod = getCancelOperationMethod =
              io.grpc.MethodDescriptor.<dev.fila.v1.CancelOperationRequest, dev.fila.v1.CancelOperationResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "CancelOperation"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.CancelOperationRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.CancelOperationResponse.getDefaultInstance()))
              .setSchemaDescriptor(new FilaAdminMethodDescriptorSupplier("CancelOperation"))
              .build();
        }
      }
    }
    return getCancelOperationMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.fila.v1.EditDeadLetterRequest,
      dev.fila.v1.EditDeadLetterResponse> getEditDeadLetterMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "EditDeadLetter",
      requestType = dev.fila.v1.EditDeadLetterRequest.class,
      responseType = dev.fila.v1.EditDeadLetterResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.fila.v1.EditDeadLetterRequest,
      dev.fila.v1.EditDeadLetterResponse> getEditDeadLetterMethod() {
    io.grpc.MethodDescriptor<dev.fila.v1.EditDeadLetterRequest, dev.fila.v1.EditDeadLetterResponse> getEditDeadLetterMethod;
    if ((getEditDeadLetterMethod = FilaAdminGrpc.getEditDeadLetterMethod) == null) {
      synchronized (FilaAdminGrpc.class) {
        if ((getEditDeadLetterMethod = FilaAdminGrpc.getEditDeadLetterMethod) == null) {
          FilaAdminGrpc.getEditDeadLetterMethod = getEditDeadLetterMethod =
              io.grpc.MethodDescriptor.<dev.fila.v1.EditDeadLetterRequest, dev.fila.v1.EditDeadLetterResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "EditDeadLetter"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.EditDeadLetterRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.EditDeadLetterResponse.getDefaultInstance()))
              .setSchemaDescriptor(new FilaAdminMethodDescriptorSupplier("EditDeadLetter"))
              .build();
        }
      }
    }
    return getEditDeadLetterMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.fila.v1.DryRunPolicyRequest,
      dev.fila.v1.DryRunPolicyResponse> getDryRunPolicyMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "DryRunPolicy",
      requestType = dev.fila.v1.DryRunPolicyRequest.class,
      responseType = dev.fila.v1.DryRunPolicyResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.fila.v1.DryRunPolicyRequest,
      dev.fila.v1.DryRunPolicyResponse> getDryRunPolicyMethod() {
    io.grpc.MethodDescriptor<dev.fila.v1.DryRunPolicyRequest, dev.fila.v1.DryRunPolicyResponse> getDryRunPolicyMethod;
    if ((getDryRunPolicyMethod = FilaAdminGrpc.getDryRunPolicyMethod) == null) {
      synchronized (FilaAdminGrpc.class) {
        if ((getDryRunPolicyMethod = FilaAdminGrpc.getDryRunPolicyMethod) == null) {
          FilaAdminGrpc.getDryRunPolicyMethod = getDryRunPolicyMethod =
              io.grpc.MethodDescriptor.<dev.fila.v1.DryRunPolicyRequest, dev.fila.v1.DryRunPolicyResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "DryRunPolicy"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.DryRunPolicyRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.DryRunPolicyResponse.getDefaultInstance()))
              .setSchemaDescriptor(new FilaAdminMethodDescriptorSupplier("DryRunPolicy"))
              .build();
        }
      }
    }
    return getDryRunPolicyMethod;
  }

  /**
   * Creates a new async stub that supports all call types for the service
   */
  public static FilaAdminStub newStub(io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<FilaAdminStub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<FilaAdminStub>() {
        @java.lang.Override
        public FilaAdminStub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new FilaAdminStub(channel, callOptions);
        }
      };
    return FilaAdminStub.newStub(factory, channel);
  }

  /**
   * Creates a new blocking-style stub that supports all types of calls on the service
   */
  public static FilaAdminBlockingV2Stub newBlockingV2Stub(
      io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<FilaAdminBlockingV2Stub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<FilaAdminBlockingV2Stub>() {
        @java.lang.Override
        public FilaAdminBlockingV2Stub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new FilaAdminBlockingV2Stub(channel, callOptions);
        }
      };
    return FilaAdminBlockingV2Stub.newStub(factory, channel);
  }

  /**
   * Creates a new blocking-style stub that supports unary and streaming output calls on the service
   */
  public static FilaAdminBlockingStub newBlockingStub(
      io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<FilaAdminBlockingStub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<FilaAdminBlockingStub>() {
        @java.lang.Override
        public FilaAdminBlockingStub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new FilaAdminBlockingStub(channel, callOptions);
        }
      };
    return FilaAdminBlockingStub.newStub(factory, channel);
  }

  /**
   * Creates a new ListenableFuture-style stub that supports unary calls on the service
   */
  public static FilaAdminFutureStub newFutureStub(
      io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<FilaAdminFutureStub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<FilaAdminFutureStub>() {
        @java.lang.Override
        public FilaAdminFutureStub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new FilaAdminFutureStub(channel, callOptions);
        }
      };
    return FilaAdminFutureStub.newStub(factory, channel);
  }

  /**
   * <pre>
   * Make, watch, change and clean up.
   * buf:lint:ignore SERVICE_SUFFIX
   * </pre>
   */
  public interface AsyncService {

    /**
     * <pre>
     * Make a queue and its dead-letter queue `&lt;name&gt;.dlq`.
     * </pre>
     */
    default void createQueue(dev.fila.v1.CreateQueueRequest request,
        io.grpc.stub.StreamObserver<dev.fila.v1.CreateQueueResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getCreateQueueMethod(), responseObserver);
    }

    /**
     * <pre>
     * Read a queue's settings.
     * </pre>
     */
    default void getQueue(dev.fila.v1.GetQueueRequest request,
        io.grpc.stub.StreamObserver<dev.fila.v1.GetQueueResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getGetQueueMethod(), responseObserver);
    }

    /**
     * <pre>
     * Change the settings that the mask names; they apply at once to what waits.
     * </pre>
     */
    default void updateQueue(dev.fila.v1.UpdateQueueRequest request,
        io.grpc.stub.StreamObserver<dev.fila.v1.UpdateQueueResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getUpdateQueueMethod(), responseObserver);
    }

    /**
     * <pre>
     * Delete a queue, its own dead-letter queue, and everything in them.
     * </pre>
     */
    default void deleteQueue(dev.fila.v1.DeleteQueueRequest request,
        io.grpc.stub.StreamObserver<dev.fila.v1.DeleteQueueResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getDeleteQueueMethod(), responseObserver);
    }

    /**
     * <pre>
     * List every queue, dead-letter queues included.
     * </pre>
     */
    default void listQueues(dev.fila.v1.ListQueuesRequest request,
        io.grpc.stub.StreamObserver<dev.fila.v1.ListQueuesResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getListQueuesMethod(), responseObserver);
    }

    /**
     * <pre>
     * Drop pending messages and give their disk space back.
     * </pre>
     */
    default void purgeQueue(dev.fila.v1.PurgeQueueRequest request,
        io.grpc.stub.StreamObserver<dev.fila.v1.PurgeQueueResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getPurgeQueueMethod(), responseObserver);
    }

    /**
     * <pre>
     * Look at pending messages without leasing them.
     * </pre>
     */
    default void peekMessages(dev.fila.v1.PeekMessagesRequest request,
        io.grpc.stub.StreamObserver<dev.fila.v1.PeekMessagesResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getPeekMessagesMethod(), responseObserver);
    }

    /**
     * <pre>
     * Depths, keys, buckets and counters of one queue.
     * </pre>
     */
    default void getStats(dev.fila.v1.GetStatsRequest request,
        io.grpc.stub.StreamObserver<dev.fila.v1.GetStatsResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getGetStatsMethod(), responseObserver);
    }

    /**
     * <pre>
     * Set a runtime config value; visible to hooks before it is answered.
     * </pre>
     */
    default void setConfig(dev.fila.v1.SetConfigRequest request,
        io.grpc.stub.StreamObserver<dev.fila.v1.SetConfigResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getSetConfigMethod(), responseObserver);
    }

    /**
     * <pre>
     * Read a runtime config value.
     * </pre>
     */
    default void getConfig(dev.fila.v1.GetConfigRequest request,
        io.grpc.stub.StreamObserver<dev.fila.v1.GetConfigResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getGetConfigMethod(), responseObserver);
    }

    /**
     * <pre>
     * List runtime config values, sorted by key.
     * </pre>
     */
    default void listConfig(dev.fila.v1.ListConfigRequest request,
        io.grpc.stub.StreamObserver<dev.fila.v1.ListConfigResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getListConfigMethod(), responseObserver);
    }

    /**
     * <pre>
     * Move dead letters back to the queue they came from, oldest first.
     * </pre>
     */
    default void redrive(dev.fila.v1.RedriveRequest request,
        io.grpc.stub.StreamObserver<dev.fila.v1.RedriveResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getRedriveMethod(), responseObserver);
    }

    /**
     * <pre>
     * Add a channel to a queue.
     * </pre>
     */
    default void createChannel(dev.fila.v1.CreateChannelRequest request,
        io.grpc.stub.StreamObserver<dev.fila.v1.CreateChannelResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getCreateChannelMethod(), responseObserver);
    }

    /**
     * <pre>
     * Delete a channel, its leases and what it had pending.
     * </pre>
     */
    default void deleteChannel(dev.fila.v1.DeleteChannelRequest request,
        io.grpc.stub.StreamObserver<dev.fila.v1.DeleteChannelResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getDeleteChannelMethod(), responseObserver);
    }

    /**
     * <pre>
     * List a queue's channels.
     * </pre>
     */
    default void listChannels(dev.fila.v1.ListChannelsRequest request,
        io.grpc.stub.StreamObserver<dev.fila.v1.ListChannelsResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getListChannelsMethod(), responseObserver);
    }

    /**
     * <pre>
     * Move a channel to an offset or a moment; what it held leased is taken back. Or only say what that would do.
     * </pre>
     */
    default void seekChannel(dev.fila.v1.SeekChannelRequest request,
        io.grpc.stub.StreamObserver<dev.fila.v1.SeekChannelResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getSeekChannelMethod(), responseObserver);
    }

    /**
     * <pre>
     * Drop what is pending in one channel; other channels keep theirs.
     * </pre>
     */
    default void purgeChannel(dev.fila.v1.PurgeChannelRequest request,
        io.grpc.stub.StreamObserver<dev.fila.v1.PurgeChannelResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getPurgeChannelMethod(), responseObserver);
    }

    /**
     * <pre>
     * Read retained messages by offset or time without leasing them.
     * </pre>
     */
    default void readLog(dev.fila.v1.ReadLogRequest request,
        io.grpc.stub.StreamObserver<dev.fila.v1.ReadLogResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getReadLogMethod(), responseObserver);
    }

    /**
     * <pre>
     * Pause, resume, weigh, cap or slow one fairness key; effective at once and kept over a restart.
     * </pre>
     */
    default void setKeyPolicy(dev.fila.v1.SetKeyPolicyRequest request,
        io.grpc.stub.StreamObserver<dev.fila.v1.SetKeyPolicyResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getSetKeyPolicyMethod(), responseObserver);
    }

    /**
     * <pre>
     * Say what SetKeyPolicy would do: when the key's messages would go, and who would wait longer; changes nothing.
     * </pre>
     */
    default void previewKeyPolicy(dev.fila.v1.PreviewKeyPolicyRequest request,
        io.grpc.stub.StreamObserver<dev.fila.v1.PreviewKeyPolicyResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getPreviewKeyPolicyMethod(), responseObserver);
    }

    /**
     * <pre>
     * Say why a fairness key is or is not being served.
     * </pre>
     */
    default void explainKey(dev.fila.v1.ExplainKeyRequest request,
        io.grpc.stub.StreamObserver<dev.fila.v1.ExplainKeyResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getExplainKeyMethod(), responseObserver);
    }

    /**
     * <pre>
     * List who consumes a queue, and what each consumer holds.
     * </pre>
     */
    default void listConsumers(dev.fila.v1.ListConsumersRequest request,
        io.grpc.stub.StreamObserver<dev.fila.v1.ListConsumersResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getListConsumersMethod(), responseObserver);
    }

    /**
     * <pre>
     * Say how the broker is: version, disk, epochs, connections, damage.
     * </pre>
     */
    default void getStatus(dev.fila.v1.GetStatusRequest request,
        io.grpc.stub.StreamObserver<dev.fila.v1.GetStatusResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getGetStatusMethod(), responseObserver);
    }

    /**
     * <pre>
     * Tell what happened and what happens: changes and who made them, consumers, circuits, dead letters, the disk.
     * </pre>
     */
    default void watchEvents(dev.fila.v1.WatchEventsRequest request,
        io.grpc.stub.StreamObserver<dev.fila.v1.WatchEventsResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getWatchEventsMethod(), responseObserver);
    }

    /**
     * <pre>
     * Rank fairness keys over all queues by how long they have been waiting, with the cause.
     * </pre>
     */
    default void listLate(dev.fila.v1.ListLateRequest request,
        io.grpc.stub.StreamObserver<dev.fila.v1.ListLateResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getListLateMethod(), responseObserver);
    }

    /**
     * <pre>
     * List what SetKeyPolicy set for single keys.
     * </pre>
     */
    default void listKeyPolicies(dev.fila.v1.ListKeyPoliciesRequest request,
        io.grpc.stub.StreamObserver<dev.fila.v1.ListKeyPoliciesResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getListKeyPoliciesMethod(), responseObserver);
    }

    /**
     * <pre>
     * Drop dead letters for good.
     * </pre>
     */
    default void dropDeadLetters(dev.fila.v1.DropDeadLettersRequest request,
        io.grpc.stub.StreamObserver<dev.fila.v1.DropDeadLettersResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getDropDeadLettersMethod(), responseObserver);
    }

    /**
     * <pre>
     * Find fairness keys of a queue by how they begin.
     * </pre>
     */
    default void findKeys(dev.fila.v1.FindKeysRequest request,
        io.grpc.stub.StreamObserver<dev.fila.v1.FindKeysResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getFindKeysMethod(), responseObserver);
    }

    /**
     * <pre>
     * Watch queues and their keys in numbers: everything at first, then once a second what changed.
     * </pre>
     */
    default void watchStats(dev.fila.v1.WatchStatsRequest request,
        io.grpc.stub.StreamObserver<dev.fila.v1.WatchStatsResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getWatchStatsMethod(), responseObserver);
    }

    /**
     * <pre>
     * Read the last hour of a channel and of some of its keys as time series, a point for each ten seconds.
     * </pre>
     */
    default void getSeries(dev.fila.v1.GetSeriesRequest request,
        io.grpc.stub.StreamObserver<dev.fila.v1.GetSeriesResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getGetSeriesMethod(), responseObserver);
    }

    /**
     * <pre>
     * List the versions of a queue's settings: who changed what, when, and why.
     * </pre>
     */
    default void listQueueVersions(dev.fila.v1.ListQueueVersionsRequest request,
        io.grpc.stub.StreamObserver<dev.fila.v1.ListQueueVersionsResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getListQueueVersionsMethod(), responseObserver);
    }

    /**
     * <pre>
     * Read the settings of one version.
     * </pre>
     */
    default void getQueueVersion(dev.fila.v1.GetQueueVersionRequest request,
        io.grpc.stub.StreamObserver<dev.fila.v1.GetQueueVersionResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getGetQueueVersionMethod(), responseObserver);
    }

    /**
     * <pre>
     * Start to move dead letters back, or to drop them, in the broker itself; whoever started it may go away.
     * </pre>
     */
    default void startOperation(dev.fila.v1.StartOperationRequest request,
        io.grpc.stub.StreamObserver<dev.fila.v1.StartOperationResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getStartOperationMethod(), responseObserver);
    }

    /**
     * <pre>
     * Watch how far an operation has come.
     * </pre>
     */
    default void watchOperation(dev.fila.v1.WatchOperationRequest request,
        io.grpc.stub.StreamObserver<dev.fila.v1.WatchOperationResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getWatchOperationMethod(), responseObserver);
    }

    /**
     * <pre>
     * List operations, those that have ended, too.
     * </pre>
     */
    default void listOperations(dev.fila.v1.ListOperationsRequest request,
        io.grpc.stub.StreamObserver<dev.fila.v1.ListOperationsResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getListOperationsMethod(), responseObserver);
    }

    /**
     * <pre>
     * End an operation; what it did is done.
     * </pre>
     */
    default void cancelOperation(dev.fila.v1.CancelOperationRequest request,
        io.grpc.stub.StreamObserver<dev.fila.v1.CancelOperationResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getCancelOperationMethod(), responseObserver);
    }

    /**
     * <pre>
     * Send a dead letter back with other headers and another payload, as a new message.
     * </pre>
     */
    default void editDeadLetter(dev.fila.v1.EditDeadLetterRequest request,
        io.grpc.stub.StreamObserver<dev.fila.v1.EditDeadLetterResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getEditDeadLetterMethod(), responseObserver);
    }

    /**
     * <pre>
     * Say how a change of settings would route the newest messages and judge the newest dead letters; changes nothing.
     * </pre>
     */
    default void dryRunPolicy(dev.fila.v1.DryRunPolicyRequest request,
        io.grpc.stub.StreamObserver<dev.fila.v1.DryRunPolicyResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getDryRunPolicyMethod(), responseObserver);
    }
  }

  /**
   * Base class for the server implementation of the service FilaAdmin.
   * <pre>
   * Make, watch, change and clean up.
   * buf:lint:ignore SERVICE_SUFFIX
   * </pre>
   */
  public static abstract class FilaAdminImplBase
      implements io.grpc.BindableService, AsyncService {

    @java.lang.Override public final io.grpc.ServerServiceDefinition bindService() {
      return FilaAdminGrpc.bindService(this);
    }
  }

  /**
   * A stub to allow clients to do asynchronous rpc calls to service FilaAdmin.
   * <pre>
   * Make, watch, change and clean up.
   * buf:lint:ignore SERVICE_SUFFIX
   * </pre>
   */
  public static final class FilaAdminStub
      extends io.grpc.stub.AbstractAsyncStub<FilaAdminStub> {
    private FilaAdminStub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected FilaAdminStub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new FilaAdminStub(channel, callOptions);
    }

    /**
     * <pre>
     * Make a queue and its dead-letter queue `&lt;name&gt;.dlq`.
     * </pre>
     */
    public void createQueue(dev.fila.v1.CreateQueueRequest request,
        io.grpc.stub.StreamObserver<dev.fila.v1.CreateQueueResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getCreateQueueMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Read a queue's settings.
     * </pre>
     */
    public void getQueue(dev.fila.v1.GetQueueRequest request,
        io.grpc.stub.StreamObserver<dev.fila.v1.GetQueueResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getGetQueueMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Change the settings that the mask names; they apply at once to what waits.
     * </pre>
     */
    public void updateQueue(dev.fila.v1.UpdateQueueRequest request,
        io.grpc.stub.StreamObserver<dev.fila.v1.UpdateQueueResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getUpdateQueueMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Delete a queue, its own dead-letter queue, and everything in them.
     * </pre>
     */
    public void deleteQueue(dev.fila.v1.DeleteQueueRequest request,
        io.grpc.stub.StreamObserver<dev.fila.v1.DeleteQueueResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getDeleteQueueMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * List every queue, dead-letter queues included.
     * </pre>
     */
    public void listQueues(dev.fila.v1.ListQueuesRequest request,
        io.grpc.stub.StreamObserver<dev.fila.v1.ListQueuesResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getListQueuesMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Drop pending messages and give their disk space back.
     * </pre>
     */
    public void purgeQueue(dev.fila.v1.PurgeQueueRequest request,
        io.grpc.stub.StreamObserver<dev.fila.v1.PurgeQueueResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getPurgeQueueMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Look at pending messages without leasing them.
     * </pre>
     */
    public void peekMessages(dev.fila.v1.PeekMessagesRequest request,
        io.grpc.stub.StreamObserver<dev.fila.v1.PeekMessagesResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getPeekMessagesMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Depths, keys, buckets and counters of one queue.
     * </pre>
     */
    public void getStats(dev.fila.v1.GetStatsRequest request,
        io.grpc.stub.StreamObserver<dev.fila.v1.GetStatsResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getGetStatsMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Set a runtime config value; visible to hooks before it is answered.
     * </pre>
     */
    public void setConfig(dev.fila.v1.SetConfigRequest request,
        io.grpc.stub.StreamObserver<dev.fila.v1.SetConfigResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getSetConfigMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Read a runtime config value.
     * </pre>
     */
    public void getConfig(dev.fila.v1.GetConfigRequest request,
        io.grpc.stub.StreamObserver<dev.fila.v1.GetConfigResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getGetConfigMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * List runtime config values, sorted by key.
     * </pre>
     */
    public void listConfig(dev.fila.v1.ListConfigRequest request,
        io.grpc.stub.StreamObserver<dev.fila.v1.ListConfigResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getListConfigMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Move dead letters back to the queue they came from, oldest first.
     * </pre>
     */
    public void redrive(dev.fila.v1.RedriveRequest request,
        io.grpc.stub.StreamObserver<dev.fila.v1.RedriveResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getRedriveMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Add a channel to a queue.
     * </pre>
     */
    public void createChannel(dev.fila.v1.CreateChannelRequest request,
        io.grpc.stub.StreamObserver<dev.fila.v1.CreateChannelResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getCreateChannelMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Delete a channel, its leases and what it had pending.
     * </pre>
     */
    public void deleteChannel(dev.fila.v1.DeleteChannelRequest request,
        io.grpc.stub.StreamObserver<dev.fila.v1.DeleteChannelResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getDeleteChannelMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * List a queue's channels.
     * </pre>
     */
    public void listChannels(dev.fila.v1.ListChannelsRequest request,
        io.grpc.stub.StreamObserver<dev.fila.v1.ListChannelsResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getListChannelsMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Move a channel to an offset or a moment; what it held leased is taken back. Or only say what that would do.
     * </pre>
     */
    public void seekChannel(dev.fila.v1.SeekChannelRequest request,
        io.grpc.stub.StreamObserver<dev.fila.v1.SeekChannelResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getSeekChannelMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Drop what is pending in one channel; other channels keep theirs.
     * </pre>
     */
    public void purgeChannel(dev.fila.v1.PurgeChannelRequest request,
        io.grpc.stub.StreamObserver<dev.fila.v1.PurgeChannelResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getPurgeChannelMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Read retained messages by offset or time without leasing them.
     * </pre>
     */
    public void readLog(dev.fila.v1.ReadLogRequest request,
        io.grpc.stub.StreamObserver<dev.fila.v1.ReadLogResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncServerStreamingCall(
          getChannel().newCall(getReadLogMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Pause, resume, weigh, cap or slow one fairness key; effective at once and kept over a restart.
     * </pre>
     */
    public void setKeyPolicy(dev.fila.v1.SetKeyPolicyRequest request,
        io.grpc.stub.StreamObserver<dev.fila.v1.SetKeyPolicyResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getSetKeyPolicyMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Say what SetKeyPolicy would do: when the key's messages would go, and who would wait longer; changes nothing.
     * </pre>
     */
    public void previewKeyPolicy(dev.fila.v1.PreviewKeyPolicyRequest request,
        io.grpc.stub.StreamObserver<dev.fila.v1.PreviewKeyPolicyResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getPreviewKeyPolicyMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Say why a fairness key is or is not being served.
     * </pre>
     */
    public void explainKey(dev.fila.v1.ExplainKeyRequest request,
        io.grpc.stub.StreamObserver<dev.fila.v1.ExplainKeyResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getExplainKeyMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * List who consumes a queue, and what each consumer holds.
     * </pre>
     */
    public void listConsumers(dev.fila.v1.ListConsumersRequest request,
        io.grpc.stub.StreamObserver<dev.fila.v1.ListConsumersResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getListConsumersMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Say how the broker is: version, disk, epochs, connections, damage.
     * </pre>
     */
    public void getStatus(dev.fila.v1.GetStatusRequest request,
        io.grpc.stub.StreamObserver<dev.fila.v1.GetStatusResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getGetStatusMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Tell what happened and what happens: changes and who made them, consumers, circuits, dead letters, the disk.
     * </pre>
     */
    public void watchEvents(dev.fila.v1.WatchEventsRequest request,
        io.grpc.stub.StreamObserver<dev.fila.v1.WatchEventsResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncServerStreamingCall(
          getChannel().newCall(getWatchEventsMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Rank fairness keys over all queues by how long they have been waiting, with the cause.
     * </pre>
     */
    public void listLate(dev.fila.v1.ListLateRequest request,
        io.grpc.stub.StreamObserver<dev.fila.v1.ListLateResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getListLateMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * List what SetKeyPolicy set for single keys.
     * </pre>
     */
    public void listKeyPolicies(dev.fila.v1.ListKeyPoliciesRequest request,
        io.grpc.stub.StreamObserver<dev.fila.v1.ListKeyPoliciesResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getListKeyPoliciesMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Drop dead letters for good.
     * </pre>
     */
    public void dropDeadLetters(dev.fila.v1.DropDeadLettersRequest request,
        io.grpc.stub.StreamObserver<dev.fila.v1.DropDeadLettersResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getDropDeadLettersMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Find fairness keys of a queue by how they begin.
     * </pre>
     */
    public void findKeys(dev.fila.v1.FindKeysRequest request,
        io.grpc.stub.StreamObserver<dev.fila.v1.FindKeysResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getFindKeysMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Watch queues and their keys in numbers: everything at first, then once a second what changed.
     * </pre>
     */
    public void watchStats(dev.fila.v1.WatchStatsRequest request,
        io.grpc.stub.StreamObserver<dev.fila.v1.WatchStatsResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncServerStreamingCall(
          getChannel().newCall(getWatchStatsMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Read the last hour of a channel and of some of its keys as time series, a point for each ten seconds.
     * </pre>
     */
    public void getSeries(dev.fila.v1.GetSeriesRequest request,
        io.grpc.stub.StreamObserver<dev.fila.v1.GetSeriesResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getGetSeriesMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * List the versions of a queue's settings: who changed what, when, and why.
     * </pre>
     */
    public void listQueueVersions(dev.fila.v1.ListQueueVersionsRequest request,
        io.grpc.stub.StreamObserver<dev.fila.v1.ListQueueVersionsResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getListQueueVersionsMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Read the settings of one version.
     * </pre>
     */
    public void getQueueVersion(dev.fila.v1.GetQueueVersionRequest request,
        io.grpc.stub.StreamObserver<dev.fila.v1.GetQueueVersionResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getGetQueueVersionMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Start to move dead letters back, or to drop them, in the broker itself; whoever started it may go away.
     * </pre>
     */
    public void startOperation(dev.fila.v1.StartOperationRequest request,
        io.grpc.stub.StreamObserver<dev.fila.v1.StartOperationResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getStartOperationMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Watch how far an operation has come.
     * </pre>
     */
    public void watchOperation(dev.fila.v1.WatchOperationRequest request,
        io.grpc.stub.StreamObserver<dev.fila.v1.WatchOperationResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncServerStreamingCall(
          getChannel().newCall(getWatchOperationMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * List operations, those that have ended, too.
     * </pre>
     */
    public void listOperations(dev.fila.v1.ListOperationsRequest request,
        io.grpc.stub.StreamObserver<dev.fila.v1.ListOperationsResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getListOperationsMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * End an operation; what it did is done.
     * </pre>
     */
    public void cancelOperation(dev.fila.v1.CancelOperationRequest request,
        io.grpc.stub.StreamObserver<dev.fila.v1.CancelOperationResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getCancelOperationMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Send a dead letter back with other headers and another payload, as a new message.
     * </pre>
     */
    public void editDeadLetter(dev.fila.v1.EditDeadLetterRequest request,
        io.grpc.stub.StreamObserver<dev.fila.v1.EditDeadLetterResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getEditDeadLetterMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Say how a change of settings would route the newest messages and judge the newest dead letters; changes nothing.
     * </pre>
     */
    public void dryRunPolicy(dev.fila.v1.DryRunPolicyRequest request,
        io.grpc.stub.StreamObserver<dev.fila.v1.DryRunPolicyResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getDryRunPolicyMethod(), getCallOptions()), request, responseObserver);
    }
  }

  /**
   * A stub to allow clients to do synchronous rpc calls to service FilaAdmin.
   * <pre>
   * Make, watch, change and clean up.
   * buf:lint:ignore SERVICE_SUFFIX
   * </pre>
   */
  public static final class FilaAdminBlockingV2Stub
      extends io.grpc.stub.AbstractBlockingStub<FilaAdminBlockingV2Stub> {
    private FilaAdminBlockingV2Stub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected FilaAdminBlockingV2Stub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new FilaAdminBlockingV2Stub(channel, callOptions);
    }

    /**
     * <pre>
     * Make a queue and its dead-letter queue `&lt;name&gt;.dlq`.
     * </pre>
     */
    public dev.fila.v1.CreateQueueResponse createQueue(dev.fila.v1.CreateQueueRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getCreateQueueMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Read a queue's settings.
     * </pre>
     */
    public dev.fila.v1.GetQueueResponse getQueue(dev.fila.v1.GetQueueRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getGetQueueMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Change the settings that the mask names; they apply at once to what waits.
     * </pre>
     */
    public dev.fila.v1.UpdateQueueResponse updateQueue(dev.fila.v1.UpdateQueueRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getUpdateQueueMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Delete a queue, its own dead-letter queue, and everything in them.
     * </pre>
     */
    public dev.fila.v1.DeleteQueueResponse deleteQueue(dev.fila.v1.DeleteQueueRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getDeleteQueueMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * List every queue, dead-letter queues included.
     * </pre>
     */
    public dev.fila.v1.ListQueuesResponse listQueues(dev.fila.v1.ListQueuesRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getListQueuesMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Drop pending messages and give their disk space back.
     * </pre>
     */
    public dev.fila.v1.PurgeQueueResponse purgeQueue(dev.fila.v1.PurgeQueueRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getPurgeQueueMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Look at pending messages without leasing them.
     * </pre>
     */
    public dev.fila.v1.PeekMessagesResponse peekMessages(dev.fila.v1.PeekMessagesRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getPeekMessagesMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Depths, keys, buckets and counters of one queue.
     * </pre>
     */
    public dev.fila.v1.GetStatsResponse getStats(dev.fila.v1.GetStatsRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getGetStatsMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Set a runtime config value; visible to hooks before it is answered.
     * </pre>
     */
    public dev.fila.v1.SetConfigResponse setConfig(dev.fila.v1.SetConfigRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getSetConfigMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Read a runtime config value.
     * </pre>
     */
    public dev.fila.v1.GetConfigResponse getConfig(dev.fila.v1.GetConfigRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getGetConfigMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * List runtime config values, sorted by key.
     * </pre>
     */
    public dev.fila.v1.ListConfigResponse listConfig(dev.fila.v1.ListConfigRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getListConfigMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Move dead letters back to the queue they came from, oldest first.
     * </pre>
     */
    public dev.fila.v1.RedriveResponse redrive(dev.fila.v1.RedriveRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getRedriveMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Add a channel to a queue.
     * </pre>
     */
    public dev.fila.v1.CreateChannelResponse createChannel(dev.fila.v1.CreateChannelRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getCreateChannelMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Delete a channel, its leases and what it had pending.
     * </pre>
     */
    public dev.fila.v1.DeleteChannelResponse deleteChannel(dev.fila.v1.DeleteChannelRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getDeleteChannelMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * List a queue's channels.
     * </pre>
     */
    public dev.fila.v1.ListChannelsResponse listChannels(dev.fila.v1.ListChannelsRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getListChannelsMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Move a channel to an offset or a moment; what it held leased is taken back. Or only say what that would do.
     * </pre>
     */
    public dev.fila.v1.SeekChannelResponse seekChannel(dev.fila.v1.SeekChannelRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getSeekChannelMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Drop what is pending in one channel; other channels keep theirs.
     * </pre>
     */
    public dev.fila.v1.PurgeChannelResponse purgeChannel(dev.fila.v1.PurgeChannelRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getPurgeChannelMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Read retained messages by offset or time without leasing them.
     * </pre>
     */
    @io.grpc.ExperimentalApi("https://github.com/grpc/grpc-java/issues/10918")
    public io.grpc.stub.BlockingClientCall<?, dev.fila.v1.ReadLogResponse>
        readLog(dev.fila.v1.ReadLogRequest request) {
      return io.grpc.stub.ClientCalls.blockingV2ServerStreamingCall(
          getChannel(), getReadLogMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Pause, resume, weigh, cap or slow one fairness key; effective at once and kept over a restart.
     * </pre>
     */
    public dev.fila.v1.SetKeyPolicyResponse setKeyPolicy(dev.fila.v1.SetKeyPolicyRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getSetKeyPolicyMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Say what SetKeyPolicy would do: when the key's messages would go, and who would wait longer; changes nothing.
     * </pre>
     */
    public dev.fila.v1.PreviewKeyPolicyResponse previewKeyPolicy(dev.fila.v1.PreviewKeyPolicyRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getPreviewKeyPolicyMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Say why a fairness key is or is not being served.
     * </pre>
     */
    public dev.fila.v1.ExplainKeyResponse explainKey(dev.fila.v1.ExplainKeyRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getExplainKeyMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * List who consumes a queue, and what each consumer holds.
     * </pre>
     */
    public dev.fila.v1.ListConsumersResponse listConsumers(dev.fila.v1.ListConsumersRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getListConsumersMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Say how the broker is: version, disk, epochs, connections, damage.
     * </pre>
     */
    public dev.fila.v1.GetStatusResponse getStatus(dev.fila.v1.GetStatusRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getGetStatusMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Tell what happened and what happens: changes and who made them, consumers, circuits, dead letters, the disk.
     * </pre>
     */
    @io.grpc.ExperimentalApi("https://github.com/grpc/grpc-java/issues/10918")
    public io.grpc.stub.BlockingClientCall<?, dev.fila.v1.WatchEventsResponse>
        watchEvents(dev.fila.v1.WatchEventsRequest request) {
      return io.grpc.stub.ClientCalls.blockingV2ServerStreamingCall(
          getChannel(), getWatchEventsMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Rank fairness keys over all queues by how long they have been waiting, with the cause.
     * </pre>
     */
    public dev.fila.v1.ListLateResponse listLate(dev.fila.v1.ListLateRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getListLateMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * List what SetKeyPolicy set for single keys.
     * </pre>
     */
    public dev.fila.v1.ListKeyPoliciesResponse listKeyPolicies(dev.fila.v1.ListKeyPoliciesRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getListKeyPoliciesMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Drop dead letters for good.
     * </pre>
     */
    public dev.fila.v1.DropDeadLettersResponse dropDeadLetters(dev.fila.v1.DropDeadLettersRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getDropDeadLettersMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Find fairness keys of a queue by how they begin.
     * </pre>
     */
    public dev.fila.v1.FindKeysResponse findKeys(dev.fila.v1.FindKeysRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getFindKeysMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Watch queues and their keys in numbers: everything at first, then once a second what changed.
     * </pre>
     */
    @io.grpc.ExperimentalApi("https://github.com/grpc/grpc-java/issues/10918")
    public io.grpc.stub.BlockingClientCall<?, dev.fila.v1.WatchStatsResponse>
        watchStats(dev.fila.v1.WatchStatsRequest request) {
      return io.grpc.stub.ClientCalls.blockingV2ServerStreamingCall(
          getChannel(), getWatchStatsMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Read the last hour of a channel and of some of its keys as time series, a point for each ten seconds.
     * </pre>
     */
    public dev.fila.v1.GetSeriesResponse getSeries(dev.fila.v1.GetSeriesRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getGetSeriesMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * List the versions of a queue's settings: who changed what, when, and why.
     * </pre>
     */
    public dev.fila.v1.ListQueueVersionsResponse listQueueVersions(dev.fila.v1.ListQueueVersionsRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getListQueueVersionsMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Read the settings of one version.
     * </pre>
     */
    public dev.fila.v1.GetQueueVersionResponse getQueueVersion(dev.fila.v1.GetQueueVersionRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getGetQueueVersionMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Start to move dead letters back, or to drop them, in the broker itself; whoever started it may go away.
     * </pre>
     */
    public dev.fila.v1.StartOperationResponse startOperation(dev.fila.v1.StartOperationRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getStartOperationMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Watch how far an operation has come.
     * </pre>
     */
    @io.grpc.ExperimentalApi("https://github.com/grpc/grpc-java/issues/10918")
    public io.grpc.stub.BlockingClientCall<?, dev.fila.v1.WatchOperationResponse>
        watchOperation(dev.fila.v1.WatchOperationRequest request) {
      return io.grpc.stub.ClientCalls.blockingV2ServerStreamingCall(
          getChannel(), getWatchOperationMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * List operations, those that have ended, too.
     * </pre>
     */
    public dev.fila.v1.ListOperationsResponse listOperations(dev.fila.v1.ListOperationsRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getListOperationsMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * End an operation; what it did is done.
     * </pre>
     */
    public dev.fila.v1.CancelOperationResponse cancelOperation(dev.fila.v1.CancelOperationRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getCancelOperationMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Send a dead letter back with other headers and another payload, as a new message.
     * </pre>
     */
    public dev.fila.v1.EditDeadLetterResponse editDeadLetter(dev.fila.v1.EditDeadLetterRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getEditDeadLetterMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Say how a change of settings would route the newest messages and judge the newest dead letters; changes nothing.
     * </pre>
     */
    public dev.fila.v1.DryRunPolicyResponse dryRunPolicy(dev.fila.v1.DryRunPolicyRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getDryRunPolicyMethod(), getCallOptions(), request);
    }
  }

  /**
   * A stub to allow clients to do limited synchronous rpc calls to service FilaAdmin.
   * <pre>
   * Make, watch, change and clean up.
   * buf:lint:ignore SERVICE_SUFFIX
   * </pre>
   */
  public static final class FilaAdminBlockingStub
      extends io.grpc.stub.AbstractBlockingStub<FilaAdminBlockingStub> {
    private FilaAdminBlockingStub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected FilaAdminBlockingStub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new FilaAdminBlockingStub(channel, callOptions);
    }

    /**
     * <pre>
     * Make a queue and its dead-letter queue `&lt;name&gt;.dlq`.
     * </pre>
     */
    public dev.fila.v1.CreateQueueResponse createQueue(dev.fila.v1.CreateQueueRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getCreateQueueMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Read a queue's settings.
     * </pre>
     */
    public dev.fila.v1.GetQueueResponse getQueue(dev.fila.v1.GetQueueRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getGetQueueMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Change the settings that the mask names; they apply at once to what waits.
     * </pre>
     */
    public dev.fila.v1.UpdateQueueResponse updateQueue(dev.fila.v1.UpdateQueueRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getUpdateQueueMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Delete a queue, its own dead-letter queue, and everything in them.
     * </pre>
     */
    public dev.fila.v1.DeleteQueueResponse deleteQueue(dev.fila.v1.DeleteQueueRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getDeleteQueueMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * List every queue, dead-letter queues included.
     * </pre>
     */
    public dev.fila.v1.ListQueuesResponse listQueues(dev.fila.v1.ListQueuesRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getListQueuesMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Drop pending messages and give their disk space back.
     * </pre>
     */
    public dev.fila.v1.PurgeQueueResponse purgeQueue(dev.fila.v1.PurgeQueueRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getPurgeQueueMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Look at pending messages without leasing them.
     * </pre>
     */
    public dev.fila.v1.PeekMessagesResponse peekMessages(dev.fila.v1.PeekMessagesRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getPeekMessagesMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Depths, keys, buckets and counters of one queue.
     * </pre>
     */
    public dev.fila.v1.GetStatsResponse getStats(dev.fila.v1.GetStatsRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getGetStatsMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Set a runtime config value; visible to hooks before it is answered.
     * </pre>
     */
    public dev.fila.v1.SetConfigResponse setConfig(dev.fila.v1.SetConfigRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getSetConfigMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Read a runtime config value.
     * </pre>
     */
    public dev.fila.v1.GetConfigResponse getConfig(dev.fila.v1.GetConfigRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getGetConfigMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * List runtime config values, sorted by key.
     * </pre>
     */
    public dev.fila.v1.ListConfigResponse listConfig(dev.fila.v1.ListConfigRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getListConfigMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Move dead letters back to the queue they came from, oldest first.
     * </pre>
     */
    public dev.fila.v1.RedriveResponse redrive(dev.fila.v1.RedriveRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getRedriveMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Add a channel to a queue.
     * </pre>
     */
    public dev.fila.v1.CreateChannelResponse createChannel(dev.fila.v1.CreateChannelRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getCreateChannelMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Delete a channel, its leases and what it had pending.
     * </pre>
     */
    public dev.fila.v1.DeleteChannelResponse deleteChannel(dev.fila.v1.DeleteChannelRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getDeleteChannelMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * List a queue's channels.
     * </pre>
     */
    public dev.fila.v1.ListChannelsResponse listChannels(dev.fila.v1.ListChannelsRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getListChannelsMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Move a channel to an offset or a moment; what it held leased is taken back. Or only say what that would do.
     * </pre>
     */
    public dev.fila.v1.SeekChannelResponse seekChannel(dev.fila.v1.SeekChannelRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getSeekChannelMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Drop what is pending in one channel; other channels keep theirs.
     * </pre>
     */
    public dev.fila.v1.PurgeChannelResponse purgeChannel(dev.fila.v1.PurgeChannelRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getPurgeChannelMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Read retained messages by offset or time without leasing them.
     * </pre>
     */
    public java.util.Iterator<dev.fila.v1.ReadLogResponse> readLog(
        dev.fila.v1.ReadLogRequest request) {
      return io.grpc.stub.ClientCalls.blockingServerStreamingCall(
          getChannel(), getReadLogMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Pause, resume, weigh, cap or slow one fairness key; effective at once and kept over a restart.
     * </pre>
     */
    public dev.fila.v1.SetKeyPolicyResponse setKeyPolicy(dev.fila.v1.SetKeyPolicyRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getSetKeyPolicyMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Say what SetKeyPolicy would do: when the key's messages would go, and who would wait longer; changes nothing.
     * </pre>
     */
    public dev.fila.v1.PreviewKeyPolicyResponse previewKeyPolicy(dev.fila.v1.PreviewKeyPolicyRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getPreviewKeyPolicyMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Say why a fairness key is or is not being served.
     * </pre>
     */
    public dev.fila.v1.ExplainKeyResponse explainKey(dev.fila.v1.ExplainKeyRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getExplainKeyMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * List who consumes a queue, and what each consumer holds.
     * </pre>
     */
    public dev.fila.v1.ListConsumersResponse listConsumers(dev.fila.v1.ListConsumersRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getListConsumersMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Say how the broker is: version, disk, epochs, connections, damage.
     * </pre>
     */
    public dev.fila.v1.GetStatusResponse getStatus(dev.fila.v1.GetStatusRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getGetStatusMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Tell what happened and what happens: changes and who made them, consumers, circuits, dead letters, the disk.
     * </pre>
     */
    public java.util.Iterator<dev.fila.v1.WatchEventsResponse> watchEvents(
        dev.fila.v1.WatchEventsRequest request) {
      return io.grpc.stub.ClientCalls.blockingServerStreamingCall(
          getChannel(), getWatchEventsMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Rank fairness keys over all queues by how long they have been waiting, with the cause.
     * </pre>
     */
    public dev.fila.v1.ListLateResponse listLate(dev.fila.v1.ListLateRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getListLateMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * List what SetKeyPolicy set for single keys.
     * </pre>
     */
    public dev.fila.v1.ListKeyPoliciesResponse listKeyPolicies(dev.fila.v1.ListKeyPoliciesRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getListKeyPoliciesMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Drop dead letters for good.
     * </pre>
     */
    public dev.fila.v1.DropDeadLettersResponse dropDeadLetters(dev.fila.v1.DropDeadLettersRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getDropDeadLettersMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Find fairness keys of a queue by how they begin.
     * </pre>
     */
    public dev.fila.v1.FindKeysResponse findKeys(dev.fila.v1.FindKeysRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getFindKeysMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Watch queues and their keys in numbers: everything at first, then once a second what changed.
     * </pre>
     */
    public java.util.Iterator<dev.fila.v1.WatchStatsResponse> watchStats(
        dev.fila.v1.WatchStatsRequest request) {
      return io.grpc.stub.ClientCalls.blockingServerStreamingCall(
          getChannel(), getWatchStatsMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Read the last hour of a channel and of some of its keys as time series, a point for each ten seconds.
     * </pre>
     */
    public dev.fila.v1.GetSeriesResponse getSeries(dev.fila.v1.GetSeriesRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getGetSeriesMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * List the versions of a queue's settings: who changed what, when, and why.
     * </pre>
     */
    public dev.fila.v1.ListQueueVersionsResponse listQueueVersions(dev.fila.v1.ListQueueVersionsRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getListQueueVersionsMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Read the settings of one version.
     * </pre>
     */
    public dev.fila.v1.GetQueueVersionResponse getQueueVersion(dev.fila.v1.GetQueueVersionRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getGetQueueVersionMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Start to move dead letters back, or to drop them, in the broker itself; whoever started it may go away.
     * </pre>
     */
    public dev.fila.v1.StartOperationResponse startOperation(dev.fila.v1.StartOperationRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getStartOperationMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Watch how far an operation has come.
     * </pre>
     */
    public java.util.Iterator<dev.fila.v1.WatchOperationResponse> watchOperation(
        dev.fila.v1.WatchOperationRequest request) {
      return io.grpc.stub.ClientCalls.blockingServerStreamingCall(
          getChannel(), getWatchOperationMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * List operations, those that have ended, too.
     * </pre>
     */
    public dev.fila.v1.ListOperationsResponse listOperations(dev.fila.v1.ListOperationsRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getListOperationsMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * End an operation; what it did is done.
     * </pre>
     */
    public dev.fila.v1.CancelOperationResponse cancelOperation(dev.fila.v1.CancelOperationRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getCancelOperationMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Send a dead letter back with other headers and another payload, as a new message.
     * </pre>
     */
    public dev.fila.v1.EditDeadLetterResponse editDeadLetter(dev.fila.v1.EditDeadLetterRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getEditDeadLetterMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Say how a change of settings would route the newest messages and judge the newest dead letters; changes nothing.
     * </pre>
     */
    public dev.fila.v1.DryRunPolicyResponse dryRunPolicy(dev.fila.v1.DryRunPolicyRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getDryRunPolicyMethod(), getCallOptions(), request);
    }
  }

  /**
   * A stub to allow clients to do ListenableFuture-style rpc calls to service FilaAdmin.
   * <pre>
   * Make, watch, change and clean up.
   * buf:lint:ignore SERVICE_SUFFIX
   * </pre>
   */
  public static final class FilaAdminFutureStub
      extends io.grpc.stub.AbstractFutureStub<FilaAdminFutureStub> {
    private FilaAdminFutureStub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected FilaAdminFutureStub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new FilaAdminFutureStub(channel, callOptions);
    }

    /**
     * <pre>
     * Make a queue and its dead-letter queue `&lt;name&gt;.dlq`.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.fila.v1.CreateQueueResponse> createQueue(
        dev.fila.v1.CreateQueueRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getCreateQueueMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Read a queue's settings.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.fila.v1.GetQueueResponse> getQueue(
        dev.fila.v1.GetQueueRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getGetQueueMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Change the settings that the mask names; they apply at once to what waits.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.fila.v1.UpdateQueueResponse> updateQueue(
        dev.fila.v1.UpdateQueueRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getUpdateQueueMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Delete a queue, its own dead-letter queue, and everything in them.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.fila.v1.DeleteQueueResponse> deleteQueue(
        dev.fila.v1.DeleteQueueRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getDeleteQueueMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * List every queue, dead-letter queues included.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.fila.v1.ListQueuesResponse> listQueues(
        dev.fila.v1.ListQueuesRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getListQueuesMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Drop pending messages and give their disk space back.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.fila.v1.PurgeQueueResponse> purgeQueue(
        dev.fila.v1.PurgeQueueRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getPurgeQueueMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Look at pending messages without leasing them.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.fila.v1.PeekMessagesResponse> peekMessages(
        dev.fila.v1.PeekMessagesRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getPeekMessagesMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Depths, keys, buckets and counters of one queue.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.fila.v1.GetStatsResponse> getStats(
        dev.fila.v1.GetStatsRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getGetStatsMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Set a runtime config value; visible to hooks before it is answered.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.fila.v1.SetConfigResponse> setConfig(
        dev.fila.v1.SetConfigRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getSetConfigMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Read a runtime config value.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.fila.v1.GetConfigResponse> getConfig(
        dev.fila.v1.GetConfigRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getGetConfigMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * List runtime config values, sorted by key.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.fila.v1.ListConfigResponse> listConfig(
        dev.fila.v1.ListConfigRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getListConfigMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Move dead letters back to the queue they came from, oldest first.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.fila.v1.RedriveResponse> redrive(
        dev.fila.v1.RedriveRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getRedriveMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Add a channel to a queue.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.fila.v1.CreateChannelResponse> createChannel(
        dev.fila.v1.CreateChannelRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getCreateChannelMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Delete a channel, its leases and what it had pending.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.fila.v1.DeleteChannelResponse> deleteChannel(
        dev.fila.v1.DeleteChannelRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getDeleteChannelMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * List a queue's channels.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.fila.v1.ListChannelsResponse> listChannels(
        dev.fila.v1.ListChannelsRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getListChannelsMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Move a channel to an offset or a moment; what it held leased is taken back. Or only say what that would do.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.fila.v1.SeekChannelResponse> seekChannel(
        dev.fila.v1.SeekChannelRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getSeekChannelMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Drop what is pending in one channel; other channels keep theirs.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.fila.v1.PurgeChannelResponse> purgeChannel(
        dev.fila.v1.PurgeChannelRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getPurgeChannelMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Pause, resume, weigh, cap or slow one fairness key; effective at once and kept over a restart.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.fila.v1.SetKeyPolicyResponse> setKeyPolicy(
        dev.fila.v1.SetKeyPolicyRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getSetKeyPolicyMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Say what SetKeyPolicy would do: when the key's messages would go, and who would wait longer; changes nothing.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.fila.v1.PreviewKeyPolicyResponse> previewKeyPolicy(
        dev.fila.v1.PreviewKeyPolicyRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getPreviewKeyPolicyMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Say why a fairness key is or is not being served.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.fila.v1.ExplainKeyResponse> explainKey(
        dev.fila.v1.ExplainKeyRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getExplainKeyMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * List who consumes a queue, and what each consumer holds.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.fila.v1.ListConsumersResponse> listConsumers(
        dev.fila.v1.ListConsumersRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getListConsumersMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Say how the broker is: version, disk, epochs, connections, damage.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.fila.v1.GetStatusResponse> getStatus(
        dev.fila.v1.GetStatusRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getGetStatusMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Rank fairness keys over all queues by how long they have been waiting, with the cause.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.fila.v1.ListLateResponse> listLate(
        dev.fila.v1.ListLateRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getListLateMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * List what SetKeyPolicy set for single keys.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.fila.v1.ListKeyPoliciesResponse> listKeyPolicies(
        dev.fila.v1.ListKeyPoliciesRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getListKeyPoliciesMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Drop dead letters for good.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.fila.v1.DropDeadLettersResponse> dropDeadLetters(
        dev.fila.v1.DropDeadLettersRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getDropDeadLettersMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Find fairness keys of a queue by how they begin.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.fila.v1.FindKeysResponse> findKeys(
        dev.fila.v1.FindKeysRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getFindKeysMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Read the last hour of a channel and of some of its keys as time series, a point for each ten seconds.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.fila.v1.GetSeriesResponse> getSeries(
        dev.fila.v1.GetSeriesRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getGetSeriesMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * List the versions of a queue's settings: who changed what, when, and why.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.fila.v1.ListQueueVersionsResponse> listQueueVersions(
        dev.fila.v1.ListQueueVersionsRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getListQueueVersionsMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Read the settings of one version.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.fila.v1.GetQueueVersionResponse> getQueueVersion(
        dev.fila.v1.GetQueueVersionRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getGetQueueVersionMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Start to move dead letters back, or to drop them, in the broker itself; whoever started it may go away.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.fila.v1.StartOperationResponse> startOperation(
        dev.fila.v1.StartOperationRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getStartOperationMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * List operations, those that have ended, too.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.fila.v1.ListOperationsResponse> listOperations(
        dev.fila.v1.ListOperationsRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getListOperationsMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * End an operation; what it did is done.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.fila.v1.CancelOperationResponse> cancelOperation(
        dev.fila.v1.CancelOperationRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getCancelOperationMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Send a dead letter back with other headers and another payload, as a new message.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.fila.v1.EditDeadLetterResponse> editDeadLetter(
        dev.fila.v1.EditDeadLetterRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getEditDeadLetterMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Say how a change of settings would route the newest messages and judge the newest dead letters; changes nothing.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.fila.v1.DryRunPolicyResponse> dryRunPolicy(
        dev.fila.v1.DryRunPolicyRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getDryRunPolicyMethod(), getCallOptions()), request);
    }
  }

  private static final int METHODID_CREATE_QUEUE = 0;
  private static final int METHODID_GET_QUEUE = 1;
  private static final int METHODID_UPDATE_QUEUE = 2;
  private static final int METHODID_DELETE_QUEUE = 3;
  private static final int METHODID_LIST_QUEUES = 4;
  private static final int METHODID_PURGE_QUEUE = 5;
  private static final int METHODID_PEEK_MESSAGES = 6;
  private static final int METHODID_GET_STATS = 7;
  private static final int METHODID_SET_CONFIG = 8;
  private static final int METHODID_GET_CONFIG = 9;
  private static final int METHODID_LIST_CONFIG = 10;
  private static final int METHODID_REDRIVE = 11;
  private static final int METHODID_CREATE_CHANNEL = 12;
  private static final int METHODID_DELETE_CHANNEL = 13;
  private static final int METHODID_LIST_CHANNELS = 14;
  private static final int METHODID_SEEK_CHANNEL = 15;
  private static final int METHODID_PURGE_CHANNEL = 16;
  private static final int METHODID_READ_LOG = 17;
  private static final int METHODID_SET_KEY_POLICY = 18;
  private static final int METHODID_PREVIEW_KEY_POLICY = 19;
  private static final int METHODID_EXPLAIN_KEY = 20;
  private static final int METHODID_LIST_CONSUMERS = 21;
  private static final int METHODID_GET_STATUS = 22;
  private static final int METHODID_WATCH_EVENTS = 23;
  private static final int METHODID_LIST_LATE = 24;
  private static final int METHODID_LIST_KEY_POLICIES = 25;
  private static final int METHODID_DROP_DEAD_LETTERS = 26;
  private static final int METHODID_FIND_KEYS = 27;
  private static final int METHODID_WATCH_STATS = 28;
  private static final int METHODID_GET_SERIES = 29;
  private static final int METHODID_LIST_QUEUE_VERSIONS = 30;
  private static final int METHODID_GET_QUEUE_VERSION = 31;
  private static final int METHODID_START_OPERATION = 32;
  private static final int METHODID_WATCH_OPERATION = 33;
  private static final int METHODID_LIST_OPERATIONS = 34;
  private static final int METHODID_CANCEL_OPERATION = 35;
  private static final int METHODID_EDIT_DEAD_LETTER = 36;
  private static final int METHODID_DRY_RUN_POLICY = 37;

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
        case METHODID_CREATE_QUEUE:
          serviceImpl.createQueue((dev.fila.v1.CreateQueueRequest) request,
              (io.grpc.stub.StreamObserver<dev.fila.v1.CreateQueueResponse>) responseObserver);
          break;
        case METHODID_GET_QUEUE:
          serviceImpl.getQueue((dev.fila.v1.GetQueueRequest) request,
              (io.grpc.stub.StreamObserver<dev.fila.v1.GetQueueResponse>) responseObserver);
          break;
        case METHODID_UPDATE_QUEUE:
          serviceImpl.updateQueue((dev.fila.v1.UpdateQueueRequest) request,
              (io.grpc.stub.StreamObserver<dev.fila.v1.UpdateQueueResponse>) responseObserver);
          break;
        case METHODID_DELETE_QUEUE:
          serviceImpl.deleteQueue((dev.fila.v1.DeleteQueueRequest) request,
              (io.grpc.stub.StreamObserver<dev.fila.v1.DeleteQueueResponse>) responseObserver);
          break;
        case METHODID_LIST_QUEUES:
          serviceImpl.listQueues((dev.fila.v1.ListQueuesRequest) request,
              (io.grpc.stub.StreamObserver<dev.fila.v1.ListQueuesResponse>) responseObserver);
          break;
        case METHODID_PURGE_QUEUE:
          serviceImpl.purgeQueue((dev.fila.v1.PurgeQueueRequest) request,
              (io.grpc.stub.StreamObserver<dev.fila.v1.PurgeQueueResponse>) responseObserver);
          break;
        case METHODID_PEEK_MESSAGES:
          serviceImpl.peekMessages((dev.fila.v1.PeekMessagesRequest) request,
              (io.grpc.stub.StreamObserver<dev.fila.v1.PeekMessagesResponse>) responseObserver);
          break;
        case METHODID_GET_STATS:
          serviceImpl.getStats((dev.fila.v1.GetStatsRequest) request,
              (io.grpc.stub.StreamObserver<dev.fila.v1.GetStatsResponse>) responseObserver);
          break;
        case METHODID_SET_CONFIG:
          serviceImpl.setConfig((dev.fila.v1.SetConfigRequest) request,
              (io.grpc.stub.StreamObserver<dev.fila.v1.SetConfigResponse>) responseObserver);
          break;
        case METHODID_GET_CONFIG:
          serviceImpl.getConfig((dev.fila.v1.GetConfigRequest) request,
              (io.grpc.stub.StreamObserver<dev.fila.v1.GetConfigResponse>) responseObserver);
          break;
        case METHODID_LIST_CONFIG:
          serviceImpl.listConfig((dev.fila.v1.ListConfigRequest) request,
              (io.grpc.stub.StreamObserver<dev.fila.v1.ListConfigResponse>) responseObserver);
          break;
        case METHODID_REDRIVE:
          serviceImpl.redrive((dev.fila.v1.RedriveRequest) request,
              (io.grpc.stub.StreamObserver<dev.fila.v1.RedriveResponse>) responseObserver);
          break;
        case METHODID_CREATE_CHANNEL:
          serviceImpl.createChannel((dev.fila.v1.CreateChannelRequest) request,
              (io.grpc.stub.StreamObserver<dev.fila.v1.CreateChannelResponse>) responseObserver);
          break;
        case METHODID_DELETE_CHANNEL:
          serviceImpl.deleteChannel((dev.fila.v1.DeleteChannelRequest) request,
              (io.grpc.stub.StreamObserver<dev.fila.v1.DeleteChannelResponse>) responseObserver);
          break;
        case METHODID_LIST_CHANNELS:
          serviceImpl.listChannels((dev.fila.v1.ListChannelsRequest) request,
              (io.grpc.stub.StreamObserver<dev.fila.v1.ListChannelsResponse>) responseObserver);
          break;
        case METHODID_SEEK_CHANNEL:
          serviceImpl.seekChannel((dev.fila.v1.SeekChannelRequest) request,
              (io.grpc.stub.StreamObserver<dev.fila.v1.SeekChannelResponse>) responseObserver);
          break;
        case METHODID_PURGE_CHANNEL:
          serviceImpl.purgeChannel((dev.fila.v1.PurgeChannelRequest) request,
              (io.grpc.stub.StreamObserver<dev.fila.v1.PurgeChannelResponse>) responseObserver);
          break;
        case METHODID_READ_LOG:
          serviceImpl.readLog((dev.fila.v1.ReadLogRequest) request,
              (io.grpc.stub.StreamObserver<dev.fila.v1.ReadLogResponse>) responseObserver);
          break;
        case METHODID_SET_KEY_POLICY:
          serviceImpl.setKeyPolicy((dev.fila.v1.SetKeyPolicyRequest) request,
              (io.grpc.stub.StreamObserver<dev.fila.v1.SetKeyPolicyResponse>) responseObserver);
          break;
        case METHODID_PREVIEW_KEY_POLICY:
          serviceImpl.previewKeyPolicy((dev.fila.v1.PreviewKeyPolicyRequest) request,
              (io.grpc.stub.StreamObserver<dev.fila.v1.PreviewKeyPolicyResponse>) responseObserver);
          break;
        case METHODID_EXPLAIN_KEY:
          serviceImpl.explainKey((dev.fila.v1.ExplainKeyRequest) request,
              (io.grpc.stub.StreamObserver<dev.fila.v1.ExplainKeyResponse>) responseObserver);
          break;
        case METHODID_LIST_CONSUMERS:
          serviceImpl.listConsumers((dev.fila.v1.ListConsumersRequest) request,
              (io.grpc.stub.StreamObserver<dev.fila.v1.ListConsumersResponse>) responseObserver);
          break;
        case METHODID_GET_STATUS:
          serviceImpl.getStatus((dev.fila.v1.GetStatusRequest) request,
              (io.grpc.stub.StreamObserver<dev.fila.v1.GetStatusResponse>) responseObserver);
          break;
        case METHODID_WATCH_EVENTS:
          serviceImpl.watchEvents((dev.fila.v1.WatchEventsRequest) request,
              (io.grpc.stub.StreamObserver<dev.fila.v1.WatchEventsResponse>) responseObserver);
          break;
        case METHODID_LIST_LATE:
          serviceImpl.listLate((dev.fila.v1.ListLateRequest) request,
              (io.grpc.stub.StreamObserver<dev.fila.v1.ListLateResponse>) responseObserver);
          break;
        case METHODID_LIST_KEY_POLICIES:
          serviceImpl.listKeyPolicies((dev.fila.v1.ListKeyPoliciesRequest) request,
              (io.grpc.stub.StreamObserver<dev.fila.v1.ListKeyPoliciesResponse>) responseObserver);
          break;
        case METHODID_DROP_DEAD_LETTERS:
          serviceImpl.dropDeadLetters((dev.fila.v1.DropDeadLettersRequest) request,
              (io.grpc.stub.StreamObserver<dev.fila.v1.DropDeadLettersResponse>) responseObserver);
          break;
        case METHODID_FIND_KEYS:
          serviceImpl.findKeys((dev.fila.v1.FindKeysRequest) request,
              (io.grpc.stub.StreamObserver<dev.fila.v1.FindKeysResponse>) responseObserver);
          break;
        case METHODID_WATCH_STATS:
          serviceImpl.watchStats((dev.fila.v1.WatchStatsRequest) request,
              (io.grpc.stub.StreamObserver<dev.fila.v1.WatchStatsResponse>) responseObserver);
          break;
        case METHODID_GET_SERIES:
          serviceImpl.getSeries((dev.fila.v1.GetSeriesRequest) request,
              (io.grpc.stub.StreamObserver<dev.fila.v1.GetSeriesResponse>) responseObserver);
          break;
        case METHODID_LIST_QUEUE_VERSIONS:
          serviceImpl.listQueueVersions((dev.fila.v1.ListQueueVersionsRequest) request,
              (io.grpc.stub.StreamObserver<dev.fila.v1.ListQueueVersionsResponse>) responseObserver);
          break;
        case METHODID_GET_QUEUE_VERSION:
          serviceImpl.getQueueVersion((dev.fila.v1.GetQueueVersionRequest) request,
              (io.grpc.stub.StreamObserver<dev.fila.v1.GetQueueVersionResponse>) responseObserver);
          break;
        case METHODID_START_OPERATION:
          serviceImpl.startOperation((dev.fila.v1.StartOperationRequest) request,
              (io.grpc.stub.StreamObserver<dev.fila.v1.StartOperationResponse>) responseObserver);
          break;
        case METHODID_WATCH_OPERATION:
          serviceImpl.watchOperation((dev.fila.v1.WatchOperationRequest) request,
              (io.grpc.stub.StreamObserver<dev.fila.v1.WatchOperationResponse>) responseObserver);
          break;
        case METHODID_LIST_OPERATIONS:
          serviceImpl.listOperations((dev.fila.v1.ListOperationsRequest) request,
              (io.grpc.stub.StreamObserver<dev.fila.v1.ListOperationsResponse>) responseObserver);
          break;
        case METHODID_CANCEL_OPERATION:
          serviceImpl.cancelOperation((dev.fila.v1.CancelOperationRequest) request,
              (io.grpc.stub.StreamObserver<dev.fila.v1.CancelOperationResponse>) responseObserver);
          break;
        case METHODID_EDIT_DEAD_LETTER:
          serviceImpl.editDeadLetter((dev.fila.v1.EditDeadLetterRequest) request,
              (io.grpc.stub.StreamObserver<dev.fila.v1.EditDeadLetterResponse>) responseObserver);
          break;
        case METHODID_DRY_RUN_POLICY:
          serviceImpl.dryRunPolicy((dev.fila.v1.DryRunPolicyRequest) request,
              (io.grpc.stub.StreamObserver<dev.fila.v1.DryRunPolicyResponse>) responseObserver);
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
          getCreateQueueMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.fila.v1.CreateQueueRequest,
              dev.fila.v1.CreateQueueResponse>(
                service, METHODID_CREATE_QUEUE)))
        .addMethod(
          getGetQueueMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.fila.v1.GetQueueRequest,
              dev.fila.v1.GetQueueResponse>(
                service, METHODID_GET_QUEUE)))
        .addMethod(
          getUpdateQueueMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.fila.v1.UpdateQueueRequest,
              dev.fila.v1.UpdateQueueResponse>(
                service, METHODID_UPDATE_QUEUE)))
        .addMethod(
          getDeleteQueueMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.fila.v1.DeleteQueueRequest,
              dev.fila.v1.DeleteQueueResponse>(
                service, METHODID_DELETE_QUEUE)))
        .addMethod(
          getListQueuesMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.fila.v1.ListQueuesRequest,
              dev.fila.v1.ListQueuesResponse>(
                service, METHODID_LIST_QUEUES)))
        .addMethod(
          getPurgeQueueMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.fila.v1.PurgeQueueRequest,
              dev.fila.v1.PurgeQueueResponse>(
                service, METHODID_PURGE_QUEUE)))
        .addMethod(
          getPeekMessagesMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.fila.v1.PeekMessagesRequest,
              dev.fila.v1.PeekMessagesResponse>(
                service, METHODID_PEEK_MESSAGES)))
        .addMethod(
          getGetStatsMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.fila.v1.GetStatsRequest,
              dev.fila.v1.GetStatsResponse>(
                service, METHODID_GET_STATS)))
        .addMethod(
          getSetConfigMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.fila.v1.SetConfigRequest,
              dev.fila.v1.SetConfigResponse>(
                service, METHODID_SET_CONFIG)))
        .addMethod(
          getGetConfigMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.fila.v1.GetConfigRequest,
              dev.fila.v1.GetConfigResponse>(
                service, METHODID_GET_CONFIG)))
        .addMethod(
          getListConfigMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.fila.v1.ListConfigRequest,
              dev.fila.v1.ListConfigResponse>(
                service, METHODID_LIST_CONFIG)))
        .addMethod(
          getRedriveMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.fila.v1.RedriveRequest,
              dev.fila.v1.RedriveResponse>(
                service, METHODID_REDRIVE)))
        .addMethod(
          getCreateChannelMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.fila.v1.CreateChannelRequest,
              dev.fila.v1.CreateChannelResponse>(
                service, METHODID_CREATE_CHANNEL)))
        .addMethod(
          getDeleteChannelMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.fila.v1.DeleteChannelRequest,
              dev.fila.v1.DeleteChannelResponse>(
                service, METHODID_DELETE_CHANNEL)))
        .addMethod(
          getListChannelsMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.fila.v1.ListChannelsRequest,
              dev.fila.v1.ListChannelsResponse>(
                service, METHODID_LIST_CHANNELS)))
        .addMethod(
          getSeekChannelMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.fila.v1.SeekChannelRequest,
              dev.fila.v1.SeekChannelResponse>(
                service, METHODID_SEEK_CHANNEL)))
        .addMethod(
          getPurgeChannelMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.fila.v1.PurgeChannelRequest,
              dev.fila.v1.PurgeChannelResponse>(
                service, METHODID_PURGE_CHANNEL)))
        .addMethod(
          getReadLogMethod(),
          io.grpc.stub.ServerCalls.asyncServerStreamingCall(
            new MethodHandlers<
              dev.fila.v1.ReadLogRequest,
              dev.fila.v1.ReadLogResponse>(
                service, METHODID_READ_LOG)))
        .addMethod(
          getSetKeyPolicyMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.fila.v1.SetKeyPolicyRequest,
              dev.fila.v1.SetKeyPolicyResponse>(
                service, METHODID_SET_KEY_POLICY)))
        .addMethod(
          getPreviewKeyPolicyMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.fila.v1.PreviewKeyPolicyRequest,
              dev.fila.v1.PreviewKeyPolicyResponse>(
                service, METHODID_PREVIEW_KEY_POLICY)))
        .addMethod(
          getExplainKeyMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.fila.v1.ExplainKeyRequest,
              dev.fila.v1.ExplainKeyResponse>(
                service, METHODID_EXPLAIN_KEY)))
        .addMethod(
          getListConsumersMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.fila.v1.ListConsumersRequest,
              dev.fila.v1.ListConsumersResponse>(
                service, METHODID_LIST_CONSUMERS)))
        .addMethod(
          getGetStatusMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.fila.v1.GetStatusRequest,
              dev.fila.v1.GetStatusResponse>(
                service, METHODID_GET_STATUS)))
        .addMethod(
          getWatchEventsMethod(),
          io.grpc.stub.ServerCalls.asyncServerStreamingCall(
            new MethodHandlers<
              dev.fila.v1.WatchEventsRequest,
              dev.fila.v1.WatchEventsResponse>(
                service, METHODID_WATCH_EVENTS)))
        .addMethod(
          getListLateMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.fila.v1.ListLateRequest,
              dev.fila.v1.ListLateResponse>(
                service, METHODID_LIST_LATE)))
        .addMethod(
          getListKeyPoliciesMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.fila.v1.ListKeyPoliciesRequest,
              dev.fila.v1.ListKeyPoliciesResponse>(
                service, METHODID_LIST_KEY_POLICIES)))
        .addMethod(
          getDropDeadLettersMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.fila.v1.DropDeadLettersRequest,
              dev.fila.v1.DropDeadLettersResponse>(
                service, METHODID_DROP_DEAD_LETTERS)))
        .addMethod(
          getFindKeysMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.fila.v1.FindKeysRequest,
              dev.fila.v1.FindKeysResponse>(
                service, METHODID_FIND_KEYS)))
        .addMethod(
          getWatchStatsMethod(),
          io.grpc.stub.ServerCalls.asyncServerStreamingCall(
            new MethodHandlers<
              dev.fila.v1.WatchStatsRequest,
              dev.fila.v1.WatchStatsResponse>(
                service, METHODID_WATCH_STATS)))
        .addMethod(
          getGetSeriesMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.fila.v1.GetSeriesRequest,
              dev.fila.v1.GetSeriesResponse>(
                service, METHODID_GET_SERIES)))
        .addMethod(
          getListQueueVersionsMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.fila.v1.ListQueueVersionsRequest,
              dev.fila.v1.ListQueueVersionsResponse>(
                service, METHODID_LIST_QUEUE_VERSIONS)))
        .addMethod(
          getGetQueueVersionMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.fila.v1.GetQueueVersionRequest,
              dev.fila.v1.GetQueueVersionResponse>(
                service, METHODID_GET_QUEUE_VERSION)))
        .addMethod(
          getStartOperationMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.fila.v1.StartOperationRequest,
              dev.fila.v1.StartOperationResponse>(
                service, METHODID_START_OPERATION)))
        .addMethod(
          getWatchOperationMethod(),
          io.grpc.stub.ServerCalls.asyncServerStreamingCall(
            new MethodHandlers<
              dev.fila.v1.WatchOperationRequest,
              dev.fila.v1.WatchOperationResponse>(
                service, METHODID_WATCH_OPERATION)))
        .addMethod(
          getListOperationsMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.fila.v1.ListOperationsRequest,
              dev.fila.v1.ListOperationsResponse>(
                service, METHODID_LIST_OPERATIONS)))
        .addMethod(
          getCancelOperationMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.fila.v1.CancelOperationRequest,
              dev.fila.v1.CancelOperationResponse>(
                service, METHODID_CANCEL_OPERATION)))
        .addMethod(
          getEditDeadLetterMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.fila.v1.EditDeadLetterRequest,
              dev.fila.v1.EditDeadLetterResponse>(
                service, METHODID_EDIT_DEAD_LETTER)))
        .addMethod(
          getDryRunPolicyMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.fila.v1.DryRunPolicyRequest,
              dev.fila.v1.DryRunPolicyResponse>(
                service, METHODID_DRY_RUN_POLICY)))
        .build();
  }

  private static abstract class FilaAdminBaseDescriptorSupplier
      implements io.grpc.protobuf.ProtoFileDescriptorSupplier, io.grpc.protobuf.ProtoServiceDescriptorSupplier {
    FilaAdminBaseDescriptorSupplier() {}

    @java.lang.Override
    public com.google.protobuf.Descriptors.FileDescriptor getFileDescriptor() {
      return dev.fila.v1.AdminProto.getDescriptor();
    }

    @java.lang.Override
    public com.google.protobuf.Descriptors.ServiceDescriptor getServiceDescriptor() {
      return getFileDescriptor().findServiceByName("FilaAdmin");
    }
  }

  private static final class FilaAdminFileDescriptorSupplier
      extends FilaAdminBaseDescriptorSupplier {
    FilaAdminFileDescriptorSupplier() {}
  }

  private static final class FilaAdminMethodDescriptorSupplier
      extends FilaAdminBaseDescriptorSupplier
      implements io.grpc.protobuf.ProtoMethodDescriptorSupplier {
    private final java.lang.String methodName;

    FilaAdminMethodDescriptorSupplier(java.lang.String methodName) {
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
      synchronized (FilaAdminGrpc.class) {
        result = serviceDescriptor;
        if (result == null) {
          serviceDescriptor = result = io.grpc.ServiceDescriptor.newBuilder(SERVICE_NAME)
              .setSchemaDescriptor(new FilaAdminFileDescriptorSupplier())
              .addMethod(getCreateQueueMethod())
              .addMethod(getGetQueueMethod())
              .addMethod(getUpdateQueueMethod())
              .addMethod(getDeleteQueueMethod())
              .addMethod(getListQueuesMethod())
              .addMethod(getPurgeQueueMethod())
              .addMethod(getPeekMessagesMethod())
              .addMethod(getGetStatsMethod())
              .addMethod(getSetConfigMethod())
              .addMethod(getGetConfigMethod())
              .addMethod(getListConfigMethod())
              .addMethod(getRedriveMethod())
              .addMethod(getCreateChannelMethod())
              .addMethod(getDeleteChannelMethod())
              .addMethod(getListChannelsMethod())
              .addMethod(getSeekChannelMethod())
              .addMethod(getPurgeChannelMethod())
              .addMethod(getReadLogMethod())
              .addMethod(getSetKeyPolicyMethod())
              .addMethod(getPreviewKeyPolicyMethod())
              .addMethod(getExplainKeyMethod())
              .addMethod(getListConsumersMethod())
              .addMethod(getGetStatusMethod())
              .addMethod(getWatchEventsMethod())
              .addMethod(getListLateMethod())
              .addMethod(getListKeyPoliciesMethod())
              .addMethod(getDropDeadLettersMethod())
              .addMethod(getFindKeysMethod())
              .addMethod(getWatchStatsMethod())
              .addMethod(getGetSeriesMethod())
              .addMethod(getListQueueVersionsMethod())
              .addMethod(getGetQueueVersionMethod())
              .addMethod(getStartOperationMethod())
              .addMethod(getWatchOperationMethod())
              .addMethod(getListOperationsMethod())
              .addMethod(getCancelOperationMethod())
              .addMethod(getEditDeadLetterMethod())
              .addMethod(getDryRunPolicyMethod())
              .build();
        }
      }
    }
    return result;
  }
}
