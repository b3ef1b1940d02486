// FakeCudnn: the part of cuDNN that Kiln uses; it computes nothing, it writes
// down what it was asked to do.
#include "unit/runtime/fake_cuda/FakeCudnn.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>

using namespace kiln::cudnn;
using kiln::test::FakeCudnn;

extern "C" FakeCudnn *fakeCudnn() {
  static FakeCudnn state;
  return &state;
}

static constexpr auto kFailure = static_cast<cudnnStatus_t>(2000);

#define ENTER                                                                  \
  if (fakeCudnn()->failCall == __func__)                                       \
  return kFailure

using Object = FakeCudnn::Object;

static std::size_t sizeOf(cudnnBackendAttributeType_t type) {
  switch (type) {
  case CUDNN_TYPE_BOOLEAN:
    return 1;
  case CUDNN_TYPE_HANDLE:
  case CUDNN_TYPE_INT64:
  case CUDNN_TYPE_VOID_PTR:
  case CUDNN_TYPE_BACKEND_DESCRIPTOR:
    return 8;
  default:
    return 4;
  }
}

static const Object &part(const Object &object, int name) {
  return *object.get<Object *>(name).front();
}

static std::int64_t uidOf(const Object &operation, int name) {
  return part(operation, name)
      .get<std::int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID)
      .front();
}

static const char *nameOf(int mode) {
  switch (mode) {
  case CUDNN_POINTWISE_ADD:
    return "ADD";
  case CUDNN_POINTWISE_MUL:
    return "MUL";
  case CUDNN_POINTWISE_DIV:
    return "DIV";
  case CUDNN_POINTWISE_SUB:
    return "SUB";
  case CUDNN_POINTWISE_EXP:
    return "EXP";
  case CUDNN_POINTWISE_LOG:
    return "LOG";
  case CUDNN_POINTWISE_CMP_GE:
    return "CMP_GE";
  case CUDNN_POINTWISE_GEN_INDEX:
    return "GEN_INDEX";
  case CUDNN_POINTWISE_BINARY_SELECT:
    return "BINARY_SELECT";
  default:
    return "?";
  }
}

/// "SUB 7, 8 -> 9": tensors by their numbers.
static std::string describe(const Object &operation) {
  if (operation.type == CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR)
    return fmt::format("MATMUL {}, {} -> {}",
                       uidOf(operation, CUDNN_ATTR_OPERATION_MATMUL_ADESC),
                       uidOf(operation, CUDNN_ATTR_OPERATION_MATMUL_BDESC),
                       uidOf(operation, CUDNN_ATTR_OPERATION_MATMUL_CDESC));
  if (operation.type == CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR) {
    int with = part(operation, CUDNN_ATTR_OPERATION_REDUCTION_DESC)
                   .get<int>(CUDNN_ATTR_REDUCTION_OPERATOR)
                   .front();
    return fmt::format("{} {} -> {}",
                       with == CUDNN_REDUCE_TENSOR_MAX ? "REDUCE_MAX"
                                                       : "REDUCE_ADD",
                       uidOf(operation, CUDNN_ATTR_OPERATION_REDUCTION_XDESC),
                       uidOf(operation, CUDNN_ATTR_OPERATION_REDUCTION_YDESC));
  }
  const Object &kind =
      part(operation, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
  std::string text =
      fmt::format("{} {}", nameOf(kind.get<int>(CUDNN_ATTR_POINTWISE_MODE)[0]),
                  uidOf(operation, CUDNN_ATTR_OPERATION_POINTWISE_XDESC));
  for (int name : {CUDNN_ATTR_OPERATION_POINTWISE_BDESC,
                   CUDNN_ATTR_OPERATION_POINTWISE_TDESC})
    if (operation.attributes.contains(name))
      text += fmt::format(", {}", uidOf(operation, name));
  return text +
         fmt::format(" -> {}",
                     uidOf(operation, CUDNN_ATTR_OPERATION_POINTWISE_YDESC));
}

static void remember(const Object &tensor) {
  auto flag = [&](int name) { return tensor.get<char>(name)[0] != 0; };
  std::int64_t uid = tensor.get<std::int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID)[0];
  fakeCudnn()->tensors[uid] = {
      uid,
      tensor.get<int>(CUDNN_ATTR_TENSOR_DATA_TYPE)[0],
      tensor.get<std::int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS),
      tensor.get<std::int64_t>(CUDNN_ATTR_TENSOR_STRIDES),
      flag(CUDNN_ATTR_TENSOR_IS_VIRTUAL),
      flag(CUDNN_ATTR_TENSOR_IS_BY_VALUE)};
}

extern "C" {

std::size_t cudnnGetVersion() { return 91900; }
const char *cudnnGetErrorString(cudnnStatus_t status) {
  return status == kFailure ? "CUDNN_STATUS_BAD_PARAM" : nullptr;
}

cudnnStatus_t cudnnCreate(cudnnHandle_t *handle) {
  ENTER;
  *handle = reinterpret_cast<cudnnHandle_t>(new int);
  ++fakeCudnn()->live;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  delete reinterpret_cast<int *>(handle);
  --fakeCudnn()->live;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetStream(cudnnHandle_t, kiln::cuda::CUstream stream) {
  ENTER;
  fakeCudnn()->stream = stream;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t
cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type,
                             cudnnBackendDescriptor_t *descriptor) {
  ENTER;
  *descriptor = new Object{type, {}};
  ++fakeCudnn()->live;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t
cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor) {
  delete static_cast<Object *>(descriptor);
  --fakeCudnn()->live;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type,
                                       std::int64_t count, const void *values) {
  ENTER;
  auto *bytes = static_cast<const std::byte *>(values);
  static_cast<Object *>(descriptor)->attributes[name] = {
      bytes, bytes + count * sizeOf(type)};
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t descriptor,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t,
                                       std::int64_t requested,
                                       std::int64_t *count, void *values) {
  ENTER;
  if (name == CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE) {
    *static_cast<std::int64_t *>(values) = 1024;
    *count = 1;
    return CUDNN_STATUS_SUCCESS;
  }
  *count = fakeCudnn()->ways;
  for (std::int64_t i = 0; i < std::min(requested, *count); ++i)
    static_cast<Object **>(values)[i]->attributes[0] = {std::byte(i)};
  return static_cast<Object *>(descriptor)->isFinished ? CUDNN_STATUS_SUCCESS
                                                       : kFailure;
}

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor) {
  ENTER;
  FakeCudnn &state = *fakeCudnn();
  auto &object = *static_cast<Object *>(descriptor);
  object.isFinished = true;
  if (object.type == CUDNN_BACKEND_TENSOR_DESCRIPTOR)
    remember(object);
  if (object.type == CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR) {
    state.operations.clear();
    for (Object *one : object.get<Object *>(CUDNN_ATTR_OPERATIONGRAPH_OPS))
      state.operations.push_back(describe(*one));
  }
  if (object.type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR &&
      int(part(object, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG)
              .attributes.at(0)[0]) < state.bad)
    return kFailure;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t, cudnnBackendDescriptor_t,
                                  cudnnBackendDescriptor_t pack) {
  ENTER;
  FakeCudnn &state = *fakeCudnn();
  auto &object = *static_cast<Object *>(pack);
  auto uids = object.get<std::int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
  auto pointers = object.get<void *>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
  state.pointers.clear();
  state.numbers.clear();
  for (std::size_t i = 0; i < uids.size(); ++i) {
    state.pointers[uids[i]] = pointers[i];
    const FakeCudnn::Tensor &tensor = state.tensors.at(uids[i]);
    if (!tensor.isByValue)
      continue;
    if (tensor.type == CUDNN_DATA_FLOAT)
      state.numbers[uids[i]] = *static_cast<float *>(pointers[i]);
    else
      state.numbers[uids[i]] =
          static_cast<float>(*static_cast<std::int32_t *>(pointers[i]));
  }
  return CUDNN_STATUS_SUCCESS;
}

} // extern "C"
