package dev.fila.v1;

import static io.grpc.MethodDescriptor.generateFullMethodName;

/**
 * <pre>
 * Who may do what.
 * buf:lint:ignore SERVICE_SUFFIX
 * </pre>
 */
@io.grpc.stub.annotations.GrpcGenerated
public final class FilaAuthGrpc {

  private FilaAuthGrpc() {}

  public static final java.lang.String SERVICE_NAME = "fila.v1.FilaAuth";

  // Static method descriptors that strictly reflect the proto.
  private static volatile io.grpc.MethodDescriptor<dev.fila.v1.CreateKeyRequest,
      dev.fila.v1.CreateKeyResponse> getCreateKeyMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "CreateKey",
      requestType = dev.fila.v1.CreateKeyRequest.class,
      responseType = dev.fila.v1.CreateKeyResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.fila.v1.CreateKeyRequest,
      dev.fila.v1.CreateKeyResponse> getCreateKeyMethod() {
    io.grpc.MethodDescriptor<dev.fila.v1.CreateKeyRequest, dev.fila.v1.CreateKeyResponse> getCreateKeyMethod;
    if ((getCreateKeyMethod = FilaAuthGrpc.getCreateKeyMethod) == null) {
      synchronized (FilaAuthGrpc.class) {
        if ((getCreateKeyMethod = FilaAuthGrpc.getCreateKeyMethod) == null) {
          FilaAuthGrpc.getCreateKeyMethod = getCreateKeyMethod =
              io.grpc.MethodDescriptor.<dev.fila.v1.CreateKeyRequest, dev.fila.v1.CreateKeyResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "CreateKey"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.CreateKeyRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.CreateKeyResponse.getDefaultInstance()))
              .setSchemaDescriptor(new FilaAuthMethodDescriptorSupplier("CreateKey"))
              .build();
        }
      }
    }
    return getCreateKeyMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.fila.v1.ListPrincipalsRequest,
      dev.fila.v1.ListPrincipalsResponse> getListPrincipalsMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "ListPrincipals",
      requestType = dev.fila.v1.ListPrincipalsRequest.class,
      responseType = dev.fila.v1.ListPrincipalsResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.fila.v1.ListPrincipalsRequest,
      dev.fila.v1.ListPrincipalsResponse> getListPrincipalsMethod() {
    io.grpc.MethodDescriptor<dev.fila.v1.ListPrincipalsRequest, dev.fila.v1.ListPrincipalsResponse> getListPrincipalsMethod;
    if ((getListPrincipalsMethod = FilaAuthGrpc.getListPrincipalsMethod) == null) {
      synchronized (FilaAuthGrpc.class) {
        if ((getListPrincipalsMethod = FilaAuthGrpc.getListPrincipalsMethod) == null) {
          FilaAuthGrpc.getListPrincipalsMethod = getListPrincipalsMethod =
              io.grpc.MethodDescriptor.<dev.fila.v1.ListPrincipalsRequest, dev.fila.v1.ListPrincipalsResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "ListPrincipals"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.ListPrincipalsRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.ListPrincipalsResponse.getDefaultInstance()))
              .setSchemaDescriptor(new FilaAuthMethodDescriptorSupplier("ListPrincipals"))
              .build();
        }
      }
    }
    return getListPrincipalsMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.fila.v1.GetPrincipalRequest,
      dev.fila.v1.GetPrincipalResponse> getGetPrincipalMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "GetPrincipal",
      requestType = dev.fila.v1.GetPrincipalRequest.class,
      responseType = dev.fila.v1.GetPrincipalResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.fila.v1.GetPrincipalRequest,
      dev.fila.v1.GetPrincipalResponse> getGetPrincipalMethod() {
    io.grpc.MethodDescriptor<dev.fila.v1.GetPrincipalRequest, dev.fila.v1.GetPrincipalResponse> getGetPrincipalMethod;
    if ((getGetPrincipalMethod = FilaAuthGrpc.getGetPrincipalMethod) == null) {
      synchronized (FilaAuthGrpc.class) {
        if ((getGetPrincipalMethod = FilaAuthGrpc.getGetPrincipalMethod) == null) {
          FilaAuthGrpc.getGetPrincipalMethod = getGetPrincipalMethod =
              io.grpc.MethodDescriptor.<dev.fila.v1.GetPrincipalRequest, dev.fila.v1.GetPrincipalResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "GetPrincipal"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.GetPrincipalRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.GetPrincipalResponse.getDefaultInstance()))
              .setSchemaDescriptor(new FilaAuthMethodDescriptorSupplier("GetPrincipal"))
              .build();
        }
      }
    }
    return getGetPrincipalMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.fila.v1.RotateKeyRequest,
      dev.fila.v1.RotateKeyResponse> getRotateKeyMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "RotateKey",
      requestType = dev.fila.v1.RotateKeyRequest.class,
      responseType = dev.fila.v1.RotateKeyResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.fila.v1.RotateKeyRequest,
      dev.fila.v1.RotateKeyResponse> getRotateKeyMethod() {
    io.grpc.MethodDescriptor<dev.fila.v1.RotateKeyRequest, dev.fila.v1.RotateKeyResponse> getRotateKeyMethod;
    if ((getRotateKeyMethod = FilaAuthGrpc.getRotateKeyMethod) == null) {
      synchronized (FilaAuthGrpc.class) {
        if ((getRotateKeyMethod = FilaAuthGrpc.getRotateKeyMethod) == null) {
          FilaAuthGrpc.getRotateKeyMethod = getRotateKeyMethod =
              io.grpc.MethodDescriptor.<dev.fila.v1.RotateKeyRequest, dev.fila.v1.RotateKeyResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "RotateKey"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.RotateKeyRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.RotateKeyResponse.getDefaultInstance()))
              .setSchemaDescriptor(new FilaAuthMethodDescriptorSupplier("RotateKey"))
              .build();
        }
      }
    }
    return getRotateKeyMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.fila.v1.RevokeKeyRequest,
      dev.fila.v1.RevokeKeyResponse> getRevokeKeyMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "RevokeKey",
      requestType = dev.fila.v1.RevokeKeyRequest.class,
      responseType = dev.fila.v1.RevokeKeyResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.fila.v1.RevokeKeyRequest,
      dev.fila.v1.RevokeKeyResponse> getRevokeKeyMethod() {
    io.grpc.MethodDescriptor<dev.fila.v1.RevokeKeyRequest, dev.fila.v1.RevokeKeyResponse> getRevokeKeyMethod;
    if ((getRevokeKeyMethod = FilaAuthGrpc.getRevokeKeyMethod) == null) {
      synchronized (FilaAuthGrpc.class) {
        if ((getRevokeKeyMethod = FilaAuthGrpc.getRevokeKeyMethod) == null) {
          FilaAuthGrpc.getRevokeKeyMethod = getRevokeKeyMethod =
              io.grpc.MethodDescriptor.<dev.fila.v1.RevokeKeyRequest, dev.fila.v1.RevokeKeyResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "RevokeKey"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.RevokeKeyRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.RevokeKeyResponse.getDefaultInstance()))
              .setSchemaDescriptor(new FilaAuthMethodDescriptorSupplier("RevokeKey"))
              .build();
        }
      }
    }
    return getRevokeKeyMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.fila.v1.GrantRequest,
      dev.fila.v1.GrantResponse> getGrantMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "Grant",
      requestType = dev.fila.v1.GrantRequest.class,
      responseType = dev.fila.v1.GrantResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.fila.v1.GrantRequest,
      dev.fila.v1.GrantResponse> getGrantMethod() {
    io.grpc.MethodDescriptor<dev.fila.v1.GrantRequest, dev.fila.v1.GrantResponse> getGrantMethod;
    if ((getGrantMethod = FilaAuthGrpc.getGrantMethod) == null) {
      synchronized (FilaAuthGrpc.class) {
        if ((getGrantMethod = FilaAuthGrpc.getGrantMethod) == null) {
          FilaAuthGrpc.getGrantMethod = getGrantMethod =
              io.grpc.MethodDescriptor.<dev.fila.v1.GrantRequest, dev.fila.v1.GrantResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "Grant"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.GrantRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.GrantResponse.getDefaultInstance()))
              .setSchemaDescriptor(new FilaAuthMethodDescriptorSupplier("Grant"))
              .build();
        }
      }
    }
    return getGrantMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.fila.v1.RevokeGrantRequest,
      dev.fila.v1.RevokeGrantResponse> getRevokeGrantMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "RevokeGrant",
      requestType = dev.fila.v1.RevokeGrantRequest.class,
      responseType = dev.fila.v1.RevokeGrantResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.fila.v1.RevokeGrantRequest,
      dev.fila.v1.RevokeGrantResponse> getRevokeGrantMethod() {
    io.grpc.MethodDescriptor<dev.fila.v1.RevokeGrantRequest, dev.fila.v1.RevokeGrantResponse> getRevokeGrantMethod;
    if ((getRevokeGrantMethod = FilaAuthGrpc.getRevokeGrantMethod) == null) {
      synchronized (FilaAuthGrpc.class) {
        if ((getRevokeGrantMethod = FilaAuthGrpc.getRevokeGrantMethod) == null) {
          FilaAuthGrpc.getRevokeGrantMethod = getRevokeGrantMethod =
              io.grpc.MethodDescriptor.<dev.fila.v1.RevokeGrantRequest, dev.fila.v1.RevokeGrantResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "RevokeGrant"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.RevokeGrantRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.RevokeGrantResponse.getDefaultInstance()))
              .setSchemaDescriptor(new FilaAuthMethodDescriptorSupplier("RevokeGrant"))
              .build();
        }
      }
    }
    return getRevokeGrantMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.fila.v1.SetQuotasRequest,
      dev.fila.v1.SetQuotasResponse> getSetQuotasMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "SetQuotas",
      requestType = dev.fila.v1.SetQuotasRequest.class,
      responseType = dev.fila.v1.SetQuotasResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.fila.v1.SetQuotasRequest,
      dev.fila.v1.SetQuotasResponse> getSetQuotasMethod() {
    io.grpc.MethodDescriptor<dev.fila.v1.SetQuotasRequest, dev.fila.v1.SetQuotasResponse> getSetQuotasMethod;
    if ((getSetQuotasMethod = FilaAuthGrpc.getSetQuotasMethod) == null) {
      synchronized (FilaAuthGrpc.class) {
        if ((getSetQuotasMethod = FilaAuthGrpc.getSetQuotasMethod) == null) {
          FilaAuthGrpc.getSetQuotasMethod = getSetQuotasMethod =
              io.grpc.MethodDescriptor.<dev.fila.v1.SetQuotasRequest, dev.fila.v1.SetQuotasResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "SetQuotas"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.SetQuotasRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.SetQuotasResponse.getDefaultInstance()))
              .setSchemaDescriptor(new FilaAuthMethodDescriptorSupplier("SetQuotas"))
              .build();
        }
      }
    }
    return getSetQuotasMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.fila.v1.CreateTenantLinkRequest,
      dev.fila.v1.CreateTenantLinkResponse> getCreateTenantLinkMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "CreateTenantLink",
      requestType = dev.fila.v1.CreateTenantLinkRequest.class,
      responseType = dev.fila.v1.CreateTenantLinkResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.fila.v1.CreateTenantLinkRequest,
      dev.fila.v1.CreateTenantLinkResponse> getCreateTenantLinkMethod() {
    io.grpc.MethodDescriptor<dev.fila.v1.CreateTenantLinkRequest, dev.fila.v1.CreateTenantLinkResponse> getCreateTenantLinkMethod;
    if ((getCreateTenantLinkMethod = FilaAuthGrpc.getCreateTenantLinkMethod) == null) {
      synchronized (FilaAuthGrpc.class) {
        if ((getCreateTenantLinkMethod = FilaAuthGrpc.getCreateTenantLinkMethod) == null) {
          FilaAuthGrpc.getCreateTenantLinkMethod = getCreateTenantLinkMethod =
              io.grpc.MethodDescriptor.<dev.fila.v1.CreateTenantLinkRequest, dev.fila.v1.CreateTenantLinkResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "CreateTenantLink"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.CreateTenantLinkRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.CreateTenantLinkResponse.getDefaultInstance()))
              .setSchemaDescriptor(new FilaAuthMethodDescriptorSupplier("CreateTenantLink"))
              .build();
        }
      }
    }
    return getCreateTenantLinkMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.fila.v1.ListTenantLinksRequest,
      dev.fila.v1.ListTenantLinksResponse> getListTenantLinksMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "ListTenantLinks",
      requestType = dev.fila.v1.ListTenantLinksRequest.class,
      responseType = dev.fila.v1.ListTenantLinksResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.fila.v1.ListTenantLinksRequest,
      dev.fila.v1.ListTenantLinksResponse> getListTenantLinksMethod() {
    io.grpc.MethodDescriptor<dev.fila.v1.ListTenantLinksRequest, dev.fila.v1.ListTenantLinksResponse> getListTenantLinksMethod;
    if ((getListTenantLinksMethod = FilaAuthGrpc.getListTenantLinksMethod) == null) {
      synchronized (FilaAuthGrpc.class) {
        if ((getListTenantLinksMethod = FilaAuthGrpc.getListTenantLinksMethod) == null) {
          FilaAuthGrpc.getListTenantLinksMethod = getListTenantLinksMethod =
              io.grpc.MethodDescriptor.<dev.fila.v1.ListTenantLinksRequest, dev.fila.v1.ListTenantLinksResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "ListTenantLinks"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.ListTenantLinksRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.ListTenantLinksResponse.getDefaultInstance()))
              .setSchemaDescriptor(new FilaAuthMethodDescriptorSupplier("ListTenantLinks"))
              .build();
        }
      }
    }
    return getListTenantLinksMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.fila.v1.RevokeTenantLinkRequest,
      dev.fila.v1.RevokeTenantLinkResponse> getRevokeTenantLinkMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "RevokeTenantLink",
      requestType = dev.fila.v1.RevokeTenantLinkRequest.class,
      responseType = dev.fila.v1.RevokeTenantLinkResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.fila.v1.RevokeTenantLinkRequest,
      dev.fila.v1.RevokeTenantLinkResponse> getRevokeTenantLinkMethod() {
    io.grpc.MethodDescriptor<dev.fila.v1.RevokeTenantLinkRequest, dev.fila.v1.RevokeTenantLinkResponse> getRevokeTenantLinkMethod;
    if ((getRevokeTenantLinkMethod = FilaAuthGrpc.getRevokeTenantLinkMethod) == null) {
      synchronized (FilaAuthGrpc.class) {
        if ((getRevokeTenantLinkMethod = FilaAuthGrpc.getRevokeTenantLinkMethod) == null) {
          FilaAuthGrpc.getRevokeTenantLinkMethod = getRevokeTenantLinkMethod =
              io.grpc.MethodDescriptor.<dev.fila.v1.RevokeTenantLinkRequest, dev.fila.v1.RevokeTenantLinkResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "RevokeTenantLink"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.RevokeTenantLinkRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.RevokeTenantLinkResponse.getDefaultInstance()))
              .setSchemaDescriptor(new FilaAuthMethodDescriptorSupplier("RevokeTenantLink"))
              .build();
        }
      }
    }
    return getRevokeTenantLinkMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.fila.v1.ListAuditRequest,
      dev.fila.v1.ListAuditResponse> getListAuditMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "ListAudit",
      requestType = dev.fila.v1.ListAuditRequest.class,
      responseType = dev.fila.v1.ListAuditResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.fila.v1.ListAuditRequest,
      dev.fila.v1.ListAuditResponse> getListAuditMethod() {
    io.grpc.MethodDescriptor<dev.fila.v1.ListAuditRequest, dev.fila.v1.ListAuditResponse> getListAuditMethod;
    if ((getListAuditMethod = FilaAuthGrpc.getListAuditMethod) == null) {
      synchronized (FilaAuthGrpc.class) {
        if ((getListAuditMethod = FilaAuthGrpc.getListAuditMethod) == null) {
          FilaAuthGrpc.getListAuditMethod = getListAuditMethod =
              io.grpc.MethodDescriptor.<dev.fila.v1.ListAuditRequest, dev.fila.v1.ListAuditResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "ListAudit"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.ListAuditRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.ListAuditResponse.getDefaultInstance()))
              .setSchemaDescriptor(new FilaAuthMethodDescriptorSupplier("ListAudit"))
              .build();
        }
      }
    }
    return getListAuditMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.fila.v1.WhoAmIRequest,
      dev.fila.v1.WhoAmIResponse> getWhoAmIMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "WhoAmI",
      requestType = dev.fila.v1.WhoAmIRequest.class,
      responseType = dev.fila.v1.WhoAmIResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.fila.v1.WhoAmIRequest,
      dev.fila.v1.WhoAmIResponse> getWhoAmIMethod() {
    io.grpc.MethodDescriptor<dev.fila.v1.WhoAmIRequest, dev.fila.v1.WhoAmIResponse> getWhoAmIMethod;
    if ((getWhoAmIMethod = FilaAuthGrpc.getWhoAmIMethod) == null) {
      synchronized (FilaAuthGrpc.class) {
        if ((getWhoAmIMethod = FilaAuthGrpc.getWhoAmIMethod) == null) {
          FilaAuthGrpc.getWhoAmIMethod = getWhoAmIMethod =
              io.grpc.MethodDescriptor.<dev.fila.v1.WhoAmIRequest, dev.fila.v1.WhoAmIResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "WhoAmI"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.WhoAmIRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.fila.v1.WhoAmIResponse.getDefaultInstance()))
              .setSchemaDescriptor(new FilaAuthMethodDescriptorSupplier("WhoAmI"))
              .build();
        }
      }
    }
    return getWhoAmIMethod;
  }

  /**
   * Creates a new async stub that supports all call types for the service
   */
  public static FilaAuthStub newStub(io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<FilaAuthStub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<FilaAuthStub>() {
        @java.lang.Override
        public FilaAuthStub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new FilaAuthStub(channel, callOptions);
        }
      };
    return FilaAuthStub.newStub(factory, channel);
  }

  /**
   * Creates a new blocking-style stub that supports all types of calls on the service
   */
  public static FilaAuthBlockingV2Stub newBlockingV2Stub(
      io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<FilaAuthBlockingV2Stub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<FilaAuthBlockingV2Stub>() {
        @java.lang.Override
        public FilaAuthBlockingV2Stub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new FilaAuthBlockingV2Stub(channel, callOptions);
        }
      };
    return FilaAuthBlockingV2Stub.newStub(factory, channel);
  }

  /**
   * Creates a new blocking-style stub that supports unary and streaming output calls on the service
   */
  public static FilaAuthBlockingStub newBlockingStub(
      io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<FilaAuthBlockingStub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<FilaAuthBlockingStub>() {
        @java.lang.Override
        public FilaAuthBlockingStub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new FilaAuthBlockingStub(channel, callOptions);
        }
      };
    return FilaAuthBlockingStub.newStub(factory, channel);
  }

  /**
   * Creates a new ListenableFuture-style stub that supports unary calls on the service
   */
  public static FilaAuthFutureStub newFutureStub(
      io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<FilaAuthFutureStub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<FilaAuthFutureStub>() {
        @java.lang.Override
        public FilaAuthFutureStub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new FilaAuthFutureStub(channel, callOptions);
        }
      };
    return FilaAuthFutureStub.newStub(factory, channel);
  }

  /**
   * <pre>
   * Who may do what.
   * buf:lint:ignore SERVICE_SUFFIX
   * </pre>
   */
  public interface AsyncService {

    /**
     * <pre>
     * Make a key, and its principal if it is new. The answer is the only place where the key is ever told.
     * </pre>
     */
    default void createKey(dev.fila.v1.CreateKeyRequest request,
        io.grpc.stub.StreamObserver<dev.fila.v1.CreateKeyResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getCreateKeyMethod(), responseObserver);
    }

    /**
     * <pre>
     * List principals with their keys and rights, by name.
     * </pre>
     */
    default void listPrincipals(dev.fila.v1.ListPrincipalsRequest request,
        io.grpc.stub.StreamObserver<dev.fila.v1.ListPrincipalsResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getListPrincipalsMethod(), responseObserver);
    }

    /**
     * <pre>
     * Look at one principal; without a name, at the caller's own, which every key may do.
     * </pre>
     */
    default void getPrincipal(dev.fila.v1.GetPrincipalRequest request,
        io.grpc.stub.StreamObserver<dev.fila.v1.GetPrincipalResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getGetPrincipalMethod(), responseObserver);
    }

    /**
     * <pre>
     * Make another key for the same principal, and let the old one end after an overlap.
     * </pre>
     */
    default void rotateKey(dev.fila.v1.RotateKeyRequest request,
        io.grpc.stub.StreamObserver<dev.fila.v1.RotateKeyResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getRotateKeyMethod(), responseObserver);
    }

    /**
     * <pre>
     * Take a key away: what it holds open ends within a second.
     * </pre>
     */
    default void revokeKey(dev.fila.v1.RevokeKeyRequest request,
        io.grpc.stub.StreamObserver<dev.fila.v1.RevokeKeyResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getRevokeKeyMethod(), responseObserver);
    }

    /**
     * <pre>
     * Give rights; makes the principal if it is new, as for the name of a certificate.
     * </pre>
     */
    default void grant(dev.fila.v1.GrantRequest request,
        io.grpc.stub.StreamObserver<dev.fila.v1.GrantResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getGrantMethod(), responseObserver);
    }

    /**
     * <pre>
     * Take rights back.
     * </pre>
     */
    default void revokeGrant(dev.fila.v1.RevokeGrantRequest request,
        io.grpc.stub.StreamObserver<dev.fila.v1.RevokeGrantResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getRevokeGrantMethod(), responseObserver);
    }

    /**
     * <pre>
     * Bound what a principal may use.
     * </pre>
     */
    default void setQuotas(dev.fila.v1.SetQuotasRequest request,
        io.grpc.stub.StreamObserver<dev.fila.v1.SetQuotasResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getSetQuotasMethod(), responseObserver);
    }

    /**
     * <pre>
     * Make a link for a tenant to look at its own part of a queue: a key that may do nothing else. The answer is the only
     * place where it is ever told. Refused while the broker asks for no keys.
     * </pre>
     */
    default void createTenantLink(dev.fila.v1.CreateTenantLinkRequest request,
        io.grpc.stub.StreamObserver<dev.fila.v1.CreateTenantLinkResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getCreateTenantLinkMethod(), responseObserver);
    }

    /**
     * <pre>
     * List links, those that have expired, too; those of queues that the caller may manage.
     * </pre>
     */
    default void listTenantLinks(dev.fila.v1.ListTenantLinksRequest request,
        io.grpc.stub.StreamObserver<dev.fila.v1.ListTenantLinksResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getListTenantLinksMethod(), responseObserver);
    }

    /**
     * <pre>
     * Take a link away: what it holds open ends within a second.
     * </pre>
     */
    default void revokeTenantLink(dev.fila.v1.RevokeTenantLinkRequest request,
        io.grpc.stub.StreamObserver<dev.fila.v1.RevokeTenantLinkResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getRevokeTenantLinkMethod(), responseObserver);
    }

    /**
     * <pre>
     * Read what admins did, newest first.
     * </pre>
     */
    default void listAudit(dev.fila.v1.ListAuditRequest request,
        io.grpc.stub.StreamObserver<dev.fila.v1.ListAuditResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getListAuditMethod(), responseObserver);
    }

    /**
     * <pre>
     * Say who the caller is and what it may do; also while the broker asks for no keys.
     * </pre>
     */
    default void whoAmI(dev.fila.v1.WhoAmIRequest request,
        io.grpc.stub.StreamObserver<dev.fila.v1.WhoAmIResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getWhoAmIMethod(), responseObserver);
    }
  }

  /**
   * Base class for the server implementation of the service FilaAuth.
   * <pre>
   * Who may do what.
   * buf:lint:ignore SERVICE_SUFFIX
   * </pre>
   */
  public static abstract class FilaAuthImplBase
      implements io.grpc.BindableService, AsyncService {

    @java.lang.Override public final io.grpc.ServerServiceDefinition bindService() {
      return FilaAuthGrpc.bindService(this);
    }
  }

  /**
   * A stub to allow clients to do asynchronous rpc calls to service FilaAuth.
   * <pre>
   * Who may do what.
   * buf:lint:ignore SERVICE_SUFFIX
   * </pre>
   */
  public static final class FilaAuthStub
      extends io.grpc.stub.AbstractAsyncStub<FilaAuthStub> {
    private FilaAuthStub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected FilaAuthStub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new FilaAuthStub(channel, callOptions);
    }

    /**
     * <pre>
     * Make a key, and its principal if it is new. The answer is the only place where the key is ever told.
     * </pre>
     */
    public void createKey(dev.fila.v1.CreateKeyRequest request,
        io.grpc.stub.StreamObserver<dev.fila.v1.CreateKeyResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getCreateKeyMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * List principals with their keys and rights, by name.
     * </pre>
     */
    public void listPrincipals(dev.fila.v1.ListPrincipalsRequest request,
        io.grpc.stub.StreamObserver<dev.fila.v1.ListPrincipalsResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getListPrincipalsMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Look at one principal; without a name, at the caller's own, which every key may do.
     * </pre>
     */
    public void getPrincipal(dev.fila.v1.GetPrincipalRequest request,
        io.grpc.stub.StreamObserver<dev.fila.v1.GetPrincipalResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getGetPrincipalMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Make another key for the same principal, and let the old one end after an overlap.
     * </pre>
     */
    public void rotateKey(dev.fila.v1.RotateKeyRequest request,
        io.grpc.stub.StreamObserver<dev.fila.v1.RotateKeyResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getRotateKeyMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Take a key away: what it holds open ends within a second.
     * </pre>
     */
    public void revokeKey(dev.fila.v1.RevokeKeyRequest request,
        io.grpc.stub.StreamObserver<dev.fila.v1.RevokeKeyResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getRevokeKeyMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Give rights; makes the principal if it is new, as for the name of a certificate.
     * </pre>
     */
    public void grant(dev.fila.v1.GrantRequest request,
        io.grpc.stub.StreamObserver<dev.fila.v1.GrantResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getGrantMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Take rights back.
     * </pre>
     */
    public void revokeGrant(dev.fila.v1.RevokeGrantRequest request,
        io.grpc.stub.StreamObserver<dev.fila.v1.RevokeGrantResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getRevokeGrantMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Bound what a principal may use.
     * </pre>
     */
    public void setQuotas(dev.fila.v1.SetQuotasRequest request,
        io.grpc.stub.StreamObserver<dev.fila.v1.SetQuotasResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getSetQuotasMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Make a link for a tenant to look at its own part of a queue: a key that may do nothing else. The answer is the only
     * place where it is ever told. Refused while the broker asks for no keys.
     * </pre>
     */
    public void createTenantLink(dev.fila.v1.CreateTenantLinkRequest request,
        io.grpc.stub.StreamObserver<dev.fila.v1.CreateTenantLinkResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getCreateTenantLinkMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * List links, those that have expired, too; those of queues that the caller may manage.
     * </pre>
     */
    public void listTenantLinks(dev.fila.v1.ListTenantLinksRequest request,
        io.grpc.stub.StreamObserver<dev.fila.v1.ListTenantLinksResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getListTenantLinksMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Take a link away: what it holds open ends within a second.
     * </pre>
     */
    public void revokeTenantLink(dev.fila.v1.RevokeTenantLinkRequest request,
        io.grpc.stub.StreamObserver<dev.fila.v1.RevokeTenantLinkResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getRevokeTenantLinkMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Read what admins did, newest first.
     * </pre>
     */
    public void listAudit(dev.fila.v1.ListAuditRequest request,
        io.grpc.stub.StreamObserver<dev.fila.v1.ListAuditResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getListAuditMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Say who the caller is and what it may do; also while the broker asks for no keys.
     * </pre>
     */
    public void whoAmI(dev.fila.v1.WhoAmIRequest request,
        io.grpc.stub.StreamObserver<dev.fila.v1.WhoAmIResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getWhoAmIMethod(), getCallOptions()), request, responseObserver);
    }
  }

  /**
   * A stub to allow clients to do synchronous rpc calls to service FilaAuth.
   * <pre>
   * Who may do what.
   * buf:lint:ignore SERVICE_SUFFIX
   * </pre>
   */
  public static final class FilaAuthBlockingV2Stub
      extends io.grpc.stub.AbstractBlockingStub<FilaAuthBlockingV2Stub> {
    private FilaAuthBlockingV2Stub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected FilaAuthBlockingV2Stub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new FilaAuthBlockingV2Stub(channel, callOptions);
    }

    /**
     * <pre>
     * Make a key, and its principal if it is new. The answer is the only place where the key is ever told.
     * </pre>
     */
    public dev.fila.v1.CreateKeyResponse createKey(dev.fila.v1.CreateKeyRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getCreateKeyMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * List principals with their keys and rights, by name.
     * </pre>
     */
    public dev.fila.v1.ListPrincipalsResponse listPrincipals(dev.fila.v1.ListPrincipalsRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getListPrincipalsMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Look at one principal; without a name, at the caller's own, which every key may do.
     * </pre>
     */
    public dev.fila.v1.GetPrincipalResponse getPrincipal(dev.fila.v1.GetPrincipalRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getGetPrincipalMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Make another key for the same principal, and let the old one end after an overlap.
     * </pre>
     */
    public dev.fila.v1.RotateKeyResponse rotateKey(dev.fila.v1.RotateKeyRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getRotateKeyMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Take a key away: what it holds open ends within a second.
     * </pre>
     */
    public dev.fila.v1.RevokeKeyResponse revokeKey(dev.fila.v1.RevokeKeyRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getRevokeKeyMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Give rights; makes the principal if it is new, as for the name of a certificate.
     * </pre>
     */
    public dev.fila.v1.GrantResponse grant(dev.fila.v1.GrantRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getGrantMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Take rights back.
     * </pre>
     */
    public dev.fila.v1.RevokeGrantResponse revokeGrant(dev.fila.v1.RevokeGrantRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getRevokeGrantMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Bound what a principal may use.
     * </pre>
     */
    public dev.fila.v1.SetQuotasResponse setQuotas(dev.fila.v1.SetQuotasRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getSetQuotasMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Make a link for a tenant to look at its own part of a queue: a key that may do nothing else. The answer is the only
     * place where it is ever told. Refused while the broker asks for no keys.
     * </pre>
     */
    public dev.fila.v1.CreateTenantLinkResponse createTenantLink(dev.fila.v1.CreateTenantLinkRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getCreateTenantLinkMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * List links, those that have expired, too; those of queues that the caller may manage.
     * </pre>
     */
    public dev.fila.v1.ListTenantLinksResponse listTenantLinks(dev.fila.v1.ListTenantLinksRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getListTenantLinksMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Take a link away: what it holds open ends within a second.
     * </pre>
     */
    public dev.fila.v1.RevokeTenantLinkResponse revokeTenantLink(dev.fila.v1.RevokeTenantLinkRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getRevokeTenantLinkMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Read what admins did, newest first.
     * </pre>
     */
    public dev.fila.v1.ListAuditResponse listAudit(dev.fila.v1.ListAuditRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getListAuditMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Say who the caller is and what it may do; also while the broker asks for no keys.
     * </pre>
     */
    public dev.fila.v1.WhoAmIResponse whoAmI(dev.fila.v1.WhoAmIRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getWhoAmIMethod(), getCallOptions(), request);
    }
  }

  /**
   * A stub to allow clients to do limited synchronous rpc calls to service FilaAuth.
   * <pre>
   * Who may do what.
   * buf:lint:ignore SERVICE_SUFFIX
   * </pre>
   */
  public static final class FilaAuthBlockingStub
      extends io.grpc.stub.AbstractBlockingStub<FilaAuthBlockingStub> {
    private FilaAuthBlockingStub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected FilaAuthBlockingStub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new FilaAuthBlockingStub(channel, callOptions);
    }

    /**
     * <pre>
     * Make a key, and its principal if it is new. The answer is the only place where the key is ever told.
     * </pre>
     */
    public dev.fila.v1.CreateKeyResponse createKey(dev.fila.v1.CreateKeyRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getCreateKeyMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * List principals with their keys and rights, by name.
     * </pre>
     */
    public dev.fila.v1.ListPrincipalsResponse listPrincipals(dev.fila.v1.ListPrincipalsRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getListPrincipalsMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Look at one principal; without a name, at the caller's own, which every key may do.
     * </pre>
     */
    public dev.fila.v1.GetPrincipalResponse getPrincipal(dev.fila.v1.GetPrincipalRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getGetPrincipalMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Make another key for the same principal, and let the old one end after an overlap.
     * </pre>
     */
    public dev.fila.v1.RotateKeyResponse rotateKey(dev.fila.v1.RotateKeyRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getRotateKeyMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Take a key away: what it holds open ends within a second.
     * </pre>
     */
    public dev.fila.v1.RevokeKeyResponse revokeKey(dev.fila.v1.RevokeKeyRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getRevokeKeyMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Give rights; makes the principal if it is new, as for the name of a certificate.
     * </pre>
     */
    public dev.fila.v1.GrantResponse grant(dev.fila.v1.GrantRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getGrantMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Take rights back.
     * </pre>
     */
    public dev.fila.v1.RevokeGrantResponse revokeGrant(dev.fila.v1.RevokeGrantRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getRevokeGrantMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Bound what a principal may use.
     * </pre>
     */
    public dev.fila.v1.SetQuotasResponse setQuotas(dev.fila.v1.SetQuotasRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getSetQuotasMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Make a link for a tenant to look at its own part of a queue: a key that may do nothing else. The answer is the only
     * place where it is ever told. Refused while the broker asks for no keys.
     * </pre>
     */
    public dev.fila.v1.CreateTenantLinkResponse createTenantLink(dev.fila.v1.CreateTenantLinkRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getCreateTenantLinkMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * List links, those that have expired, too; those of queues that the caller may manage.
     * </pre>
     */
    public dev.fila.v1.ListTenantLinksResponse listTenantLinks(dev.fila.v1.ListTenantLinksRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getListTenantLinksMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Take a link away: what it holds open ends within a second.
     * </pre>
     */
    public dev.fila.v1.RevokeTenantLinkResponse revokeTenantLink(dev.fila.v1.RevokeTenantLinkRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getRevokeTenantLinkMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Read what admins did, newest first.
     * </pre>
     */
    public dev.fila.v1.ListAuditResponse listAudit(dev.fila.v1.ListAuditRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getListAuditMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Say who the caller is and what it may do; also while the broker asks for no keys.
     * </pre>
     */
    public dev.fila.v1.WhoAmIResponse whoAmI(dev.fila.v1.WhoAmIRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getWhoAmIMethod(), getCallOptions(), request);
    }
  }

  /**
   * A stub to allow clients to do ListenableFuture-style rpc calls to service FilaAuth.
   * <pre>
   * Who may do what.
   * buf:lint:ignore SERVICE_SUFFIX
   * </pre>
   */
  public static final class FilaAuthFutureStub
      extends io.grpc.stub.AbstractFutureStub<FilaAuthFutureStub> {
    private FilaAuthFutureStub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected FilaAuthFutureStub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new FilaAuthFutureStub(channel, callOptions);
    }

    /**
     * <pre>
     * Make a key, and its principal if it is new. The answer is the only place where the key is ever told.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.fila.v1.CreateKeyResponse> createKey(
        dev.fila.v1.CreateKeyRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getCreateKeyMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * List principals with their keys and rights, by name.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.fila.v1.ListPrincipalsResponse> listPrincipals(
        dev.fila.v1.ListPrincipalsRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getListPrincipalsMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Look at one principal; without a name, at the caller's own, which every key may do.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.fila.v1.GetPrincipalResponse> getPrincipal(
        dev.fila.v1.GetPrincipalRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getGetPrincipalMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Make another key for the same principal, and let the old one end after an overlap.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.fila.v1.RotateKeyResponse> rotateKey(
        dev.fila.v1.RotateKeyRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getRotateKeyMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Take a key away: what it holds open ends within a second.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.fila.v1.RevokeKeyResponse> revokeKey(
        dev.fila.v1.RevokeKeyRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getRevokeKeyMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Give rights; makes the principal if it is new, as for the name of a certificate.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.fila.v1.GrantResponse> grant(
        dev.fila.v1.GrantRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getGrantMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Take rights back.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.fila.v1.RevokeGrantResponse> revokeGrant(
        dev.fila.v1.RevokeGrantRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getRevokeGrantMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Bound what a principal may use.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.fila.v1.SetQuotasResponse> setQuotas(
        dev.fila.v1.SetQuotasRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getSetQuotasMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Make a link for a tenant to look at its own part of a queue: a key that may do nothing else. The answer is the only
     * place where it is ever told. Refused while the broker asks for no keys.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.fila.v1.CreateTenantLinkResponse> createTenantLink(
        dev.fila.v1.CreateTenantLinkRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getCreateTenantLinkMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * List links, those that have expired, too; those of queues that the caller may manage.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.fila.v1.ListTenantLinksResponse> listTenantLinks(
        dev.fila.v1.ListTenantLinksRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getListTenantLinksMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Take a link away: what it holds open ends within a second.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.fila.v1.RevokeTenantLinkResponse> revokeTenantLink(
        dev.fila.v1.RevokeTenantLinkRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getRevokeTenantLinkMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Read what admins did, newest first.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.fila.v1.ListAuditResponse> listAudit(
        dev.fila.v1.ListAuditRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getListAuditMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Say who the caller is and what it may do; also while the broker asks for no keys.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.fila.v1.WhoAmIResponse> whoAmI(
        dev.fila.v1.WhoAmIRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getWhoAmIMethod(), getCallOptions()), request);
    }
  }

  private static final int METHODID_CREATE_KEY = 0;
  private static final int METHODID_LIST_PRINCIPALS = 1;
  private static final int METHODID_GET_PRINCIPAL = 2;
  private static final int METHODID_ROTATE_KEY = 3;
  private static final int METHODID_REVOKE_KEY = 4;
  private static final int METHODID_GRANT = 5;
  private static final int METHODID_REVOKE_GRANT = 6;
  private static final int METHODID_SET_QUOTAS = 7;
  private static final int METHODID_CREATE_TENANT_LINK = 8;
  private static final int METHODID_LIST_TENANT_LINKS = 9;
  private static final int METHODID_REVOKE_TENANT_LINK = 10;
  private static final int METHODID_LIST_AUDIT = 11;
  private static final int METHODID_WHO_AM_I = 12;

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
        case METHODID_CREATE_KEY:
          serviceImpl.createKey((dev.fila.v1.CreateKeyRequest) request,
              (io.grpc.stub.StreamObserver<dev.fila.v1.CreateKeyResponse>) responseObserver);
          break;
        case METHODID_LIST_PRINCIPALS:
          serviceImpl.listPrincipals((dev.fila.v1.ListPrincipalsRequest) request,
              (io.grpc.stub.StreamObserver<dev.fila.v1.ListPrincipalsResponse>) responseObserver);
          break;
        case METHODID_GET_PRINCIPAL:
          serviceImpl.getPrincipal((dev.fila.v1.GetPrincipalRequest) request,
              (io.grpc.stub.StreamObserver<dev.fila.v1.GetPrincipalResponse>) responseObserver);
          break;
        case METHODID_ROTATE_KEY:
          serviceImpl.rotateKey((dev.fila.v1.RotateKeyRequest) request,
              (io.grpc.stub.StreamObserver<dev.fila.v1.RotateKeyResponse>) responseObserver);
          break;
        case METHODID_REVOKE_KEY:
          serviceImpl.revokeKey((dev.fila.v1.RevokeKeyRequest) request,
              (io.grpc.stub.StreamObserver<dev.fila.v1.RevokeKeyResponse>) responseObserver);
          break;
        case METHODID_GRANT:
          serviceImpl.grant((dev.fila.v1.GrantRequest) request,
              (io.grpc.stub.StreamObserver<dev.fila.v1.GrantResponse>) responseObserver);
          break;
        case METHODID_REVOKE_GRANT:
          serviceImpl.revokeGrant((dev.fila.v1.RevokeGrantRequest) request,
              (io.grpc.stub.StreamObserver<dev.fila.v1.RevokeGrantResponse>) responseObserver);
          break;
        case METHODID_SET_QUOTAS:
          serviceImpl.setQuotas((dev.fila.v1.SetQuotasRequest) request,
              (io.grpc.stub.StreamObserver<dev.fila.v1.SetQuotasResponse>) responseObserver);
          break;
        case METHODID_CREATE_TENANT_LINK:
          serviceImpl.createTenantLink((dev.fila.v1.CreateTenantLinkRequest) request,
              (io.grpc.stub.StreamObserver<dev.fila.v1.CreateTenantLinkResponse>) responseObserver);
          break;
        case METHODID_LIST_TENANT_LINKS:
          serviceImpl.listTenantLinks((dev.fila.v1.ListTenantLinksRequest) request,
              (io.grpc.stub.StreamObserver<dev.fila.v1.ListTenantLinksResponse>) responseObserver);
          break;
        case METHODID_REVOKE_TENANT_LINK:
          serviceImpl.revokeTenantLink((dev.fila.v1.RevokeTenantLinkRequest) request,
              (io.grpc.stub.StreamObserver<dev.fila.v1.RevokeTenantLinkResponse>) responseObserver);
          break;
        case METHODID_LIST_AUDIT:
          serviceImpl.listAudit((dev.fila.v1.ListAuditRequest) request,
              (io.grpc.stub.StreamObserver<dev.fila.v1.ListAuditResponse>) responseObserver);
          break;
        case METHODID_WHO_AM_I:
          serviceImpl.whoAmI((dev.fila.v1.WhoAmIRequest) request,
              (io.grpc.stub.StreamObserver<dev.fila.v1.WhoAmIResponse>) responseObserver);
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
          getCreateKeyMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.fila.v1.CreateKeyRequest,
              dev.fila.v1.CreateKeyResponse>(
                service, METHODID_CREATE_KEY)))
        .addMethod(
          getListPrincipalsMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.fila.v1.ListPrincipalsRequest,
              dev.fila.v1.ListPrincipalsResponse>(
                service, METHODID_LIST_PRINCIPALS)))
        .addMethod(
          getGetPrincipalMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.fila.v1.GetPrincipalRequest,
              dev.fila.v1.GetPrincipalResponse>(
                service, METHODID_GET_PRINCIPAL)))
        .addMethod(
          getRotateKeyMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.fila.v1.RotateKeyRequest,
              dev.fila.v1.RotateKeyResponse>(
                service, METHODID_ROTATE_KEY)))
        .addMethod(
          getRevokeKeyMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.fila.v1.RevokeKeyRequest,
              dev.fila.v1.RevokeKeyResponse>(
                service, METHODID_REVOKE_KEY)))
        .addMethod(
          getGrantMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.fila.v1.GrantRequest,
              dev.fila.v1.GrantResponse>(
                service, METHODID_GRANT)))
        .addMethod(
          getRevokeGrantMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.fila.v1.RevokeGrantRequest,
              dev.fila.v1.RevokeGrantResponse>(
                service, METHODID_REVOKE_GRANT)))
        .addMethod(
          getSetQuotasMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.fila.v1.SetQuotasRequest,
              dev.fila.v1.SetQuotasResponse>(
                service, METHODID_SET_QUOTAS)))
        .addMethod(
          getCreateTenantLinkMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.fila.v1.CreateTenantLinkRequest,
              dev.fila.v1.CreateTenantLinkResponse>(
                service, METHODID_CREATE_TENANT_LINK)))
        .addMethod(
          getListTenantLinksMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.fila.v1.ListTenantLinksRequest,
              dev.fila.v1.ListTenantLinksResponse>(
                service, METHODID_LIST_TENANT_LINKS)))
        .addMethod(
          getRevokeTenantLinkMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.fila.v1.RevokeTenantLinkRequest,
              dev.fila.v1.RevokeTenantLinkResponse>(
                service, METHODID_REVOKE_TENANT_LINK)))
        .addMethod(
          getListAuditMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.fila.v1.ListAuditRequest,
              dev.fila.v1.ListAuditResponse>(
                service, METHODID_LIST_AUDIT)))
        .addMethod(
          getWhoAmIMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.fila.v1.WhoAmIRequest,
              dev.fila.v1.WhoAmIResponse>(
                service, METHODID_WHO_AM_I)))
        .build();
  }

  private static abstract class FilaAuthBaseDescriptorSupplier
      implements io.grpc.protobuf.ProtoFileDescriptorSupplier, io.grpc.protobuf.ProtoServiceDescriptorSupplier {
    FilaAuthBaseDescriptorSupplier() {}

    @java.lang.Override
    public com.google.protobuf.Descriptors.FileDescriptor getFileDescriptor() {
      return dev.fila.v1.AuthProto.getDescriptor();
    }

    @java.lang.Override
    public com.google.protobuf.Descriptors.ServiceDescriptor getServiceDescriptor() {
      return getFileDescriptor().findServiceByName("FilaAuth");
    }
  }

  private static final class FilaAuthFileDescriptorSupplier
      extends FilaAuthBaseDescriptorSupplier {
    FilaAuthFileDescriptorSupplier() {}
  }

  private static final class FilaAuthMethodDescriptorSupplier
      extends FilaAuthBaseDescriptorSupplier
      implements io.grpc.protobuf.ProtoMethodDescriptorSupplier {
    private final java.lang.String methodName;

    FilaAuthMethodDescriptorSupplier(java.lang.String methodName) {
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
      synchronized (FilaAuthGrpc.class) {
        result = serviceDescriptor;
        if (result == null) {
          serviceDescriptor = result = io.grpc.ServiceDescriptor.newBuilder(SERVICE_NAME)
              .setSchemaDescriptor(new FilaAuthFileDescriptorSupplier())
              .addMethod(getCreateKeyMethod())
              .addMethod(getListPrincipalsMethod())
              .addMethod(getGetPrincipalMethod())
              .addMethod(getRotateKeyMethod())
              .addMethod(getRevokeKeyMethod())
              .addMethod(getGrantMethod())
              .addMethod(getRevokeGrantMethod())
              .addMethod(getSetQuotasMethod())
              .addMethod(getCreateTenantLinkMethod())
              .addMethod(getListTenantLinksMethod())
              .addMethod(getRevokeTenantLinkMethod())
              .addMethod(getListAuditMethod())
              .addMethod(getWhoAmIMethod())
              .build();
        }
      }
    }
    return result;
  }
}
