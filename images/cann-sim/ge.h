/* Our own minimal declarations of the ge:: classes that the Ascend plugin links against.
 *
 * Only what decides the binary interface is kept: the size of an object (each holds one shared pointer; Operator has a virtual
 * table before it), whether it is passed by value, and the signature of each member. The plugin copies and destroys these objects
 * with code of its own, so the shared pointers must be real. Old libstdc++ ABI: compile with -D_GLIBCXX_USE_CXX11_ABI=0. */
#ifndef HYPER_REPRO_GE_H
#define HYPER_REPRO_GE_H
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

namespace ge {
using graphStatus = uint32_t;
constexpr graphStatus kSuccess = 0;
constexpr graphStatus kFailed = 0xFFFFFFFFU;
enum DataType : int {};
enum Format : int {};
enum Placement : int {};

class AscendString {
 public:
  AscendString() = default;
  AscendString(const char *text);
  const char *GetString() const;
  bool operator<(const AscendString &other) const;

 private:
  std::shared_ptr<std::string> text_;
};

class Shape {
 public:
  Shape();
  explicit Shape(const std::vector<int64_t> &dims);
  size_t GetDimNum() const;
  int64_t GetDim(size_t index) const;
  graphStatus SetDim(size_t index, int64_t value);
  std::vector<int64_t> GetDims() const;

 private:
  std::shared_ptr<std::vector<int64_t>> dims_;
};

struct TensorDescState;
class TensorDesc {
 public:
  TensorDesc();
  TensorDesc(Shape shape, Format format, DataType type);
  TensorDesc(const TensorDesc &other);
  TensorDesc(TensorDesc &&other);
  TensorDesc &operator=(const TensorDesc &other) = default;
  DataType GetDataType() const;
  Format GetFormat() const;
  Shape GetShape() const;
  Shape GetOriginShape() const;
  void SetDataType(DataType type);
  void SetFormat(Format format);
  void SetOriginFormat(Format format);
  void SetShape(const Shape &shape);
  void SetOriginShape(const Shape &shape);
  void SetPlacement(Placement placement);
  void SetRealDimCnt(int64_t count);

 private:
  std::shared_ptr<TensorDescState> state_;
};

struct TensorState;
class Tensor {
 public:
  Tensor();
  explicit Tensor(const TensorDesc &desc);
  Tensor(const TensorDesc &desc, const uint8_t *data, size_t size);
  TensorDesc GetTensorDesc() const;
  uint8_t *GetData();
  size_t GetSize() const;
  graphStatus SetData(const uint8_t *data, size_t size);
  graphStatus SetData(uint8_t *data, size_t size, const std::function<void(uint8_t *)> &deleter);
  graphStatus SetData(const std::string &data);
  graphStatus SetData(const std::vector<std::string> &data);

 private:
  std::shared_ptr<TensorState> state_;
};

struct GraphState;
class Graph {
 public:
  explicit Graph(const char *name);
  explicit Graph(const std::string &name);

 private:
  std::shared_ptr<GraphState> state_;
};

class TensorType {
 public:
  TensorType(const std::initializer_list<DataType> &types);

 private:
  std::shared_ptr<void> state_;
};

class Promote {
 public:
  Promote(const std::initializer_list<const char *> &names);

 private:
  std::shared_ptr<void> state_;
};

struct OperatorState;
class Operator {
 public:
  // The plugin holds a weak copy of the virtual table: one pair of destructors, nothing else.
  virtual ~Operator() = default;
  Operator() = default;
  explicit Operator(const std::string &type);
  explicit Operator(const char *type);
  Operator(const std::string &name, const std::string &type);
  Operator(const char *name, const char *type);
  Operator(const AscendString &name, const AscendString &type);

  std::string GetName() const;
  std::string GetOpType() const;
  graphStatus GetName(AscendString &name) const;
  graphStatus GetOpType(AscendString &type) const;
  TensorDesc GetOutputDesc(const std::string &name) const;
  TensorDesc GetOutputDesc(uint32_t index) const;
  int GetDynamicOutputNum(const std::string &name) const;

  Operator &AddControlInput(const Operator &source);
  Operator &SetInput(const char *name, const Operator &source);
  Operator &SetInput(const char *name, uint32_t index, const Operator &source);
  Operator &SetInput(const char *name, uint32_t index, const Operator &source, const char *output);
  Operator &SetInput(const std::string &name, const Operator &source);
  Operator &SetInput(const std::string &name, const Operator &source, const std::string &output);
  graphStatus UpdateInputDesc(const char *name, const TensorDesc &desc);
  graphStatus UpdateInputDesc(const std::string &name, const TensorDesc &desc);
  graphStatus UpdateOutputDesc(const char *name, const TensorDesc &desc);
  graphStatus UpdateOutputDesc(const std::string &name, const TensorDesc &desc);
  graphStatus UpdateDynamicOutputDesc(const char *name, uint32_t index, const TensorDesc &desc);

#define HYPER_REPRO_ATTRIBUTES(ONE) /* what SetAttr and GetAttr carry by C name */                                        \
  ONE(const char *, const Tensor &, Tensor &)                                                                             \
  ONE(const char *, const DataType &, DataType &)                                                                         \
  ONE(const char *, const std::vector<DataType> &, std::vector<DataType> &)                                               \
  ONE(const char *, const std::vector<std::vector<int64_t>> &, std::vector<std::vector<int64_t>> &)                       \
  ONE(const char *, const std::vector<float> &, std::vector<float> &)                                                     \
  ONE(const char *, const std::vector<int32_t> &, std::vector<int32_t> &)                                                 \
  ONE(const char *, const std::vector<int64_t> &, std::vector<int64_t> &)                                                 \
  ONE(const char *, bool, bool &)                                                                                         \
  ONE(const char *, float, float &)                                                                                       \
  ONE(const char *, int32_t, int32_t &)                                                                                   \
  ONE(const char *, int64_t, int64_t &)                                                                                   \
  ONE(const std::string &, const std::string &, std::string &)                                                            \
  ONE(const std::string &, const std::vector<std::string> &, std::vector<std::string> &)
#define HYPER_REPRO_SET_ONLY(ONE) /* what only SetAttr carries */                                                         \
  ONE(const char *, const char *)                                                                                         \
  ONE(const char *, uint32_t)                                                                                             \
  ONE(const std::string &, const std::vector<bool> &)                                                                     \
  ONE(const std::string &, const std::vector<float> &)                                                                    \
  ONE(const std::string &, const std::vector<int32_t> &)                                                                  \
  ONE(const std::string &, const std::vector<int64_t> &)                                                                  \
  ONE(const std::string &, bool)                                                                                          \
  ONE(const std::string &, float)                                                                                         \
  ONE(const std::string &, int32_t)                                                                                       \
  ONE(const std::string &, int64_t)
#define HYPER_REPRO_REGISTERED(ONE) /* what AttrRegister carries as a default */                                          \
  ONE(const AscendString &)                                                                                               \
  ONE(const Tensor &)                                                                                                     \
  ONE(const DataType &)                                                                                                   \
  ONE(const std::vector<AscendString> &)                                                                                  \
  ONE(const std::vector<DataType> &)                                                                                      \
  ONE(const std::vector<std::vector<int64_t>> &)                                                                          \
  ONE(const std::vector<float> &)                                                                                         \
  ONE(const std::vector<int64_t> &)                                                                                       \
  ONE(bool)                                                                                                               \
  ONE(float)                                                                                                              \
  ONE(int64_t)
#define HYPER_REPRO_DECLARE(NAME, VALUE, RESULT)  \
  Operator &SetAttr(NAME name, VALUE value);      \
  graphStatus GetAttr(NAME name, RESULT value) const;
  HYPER_REPRO_ATTRIBUTES(HYPER_REPRO_DECLARE)
#undef HYPER_REPRO_DECLARE
#define HYPER_REPRO_DECLARE(NAME, VALUE) Operator &SetAttr(NAME name, VALUE value);
  HYPER_REPRO_SET_ONLY(HYPER_REPRO_DECLARE)
#undef HYPER_REPRO_DECLARE
#define HYPER_REPRO_DECLARE(VALUE) void AttrRegister(const char *name, VALUE value);
  HYPER_REPRO_REGISTERED(HYPER_REPRO_DECLARE)
#undef HYPER_REPRO_DECLARE

  void InputRegister(const char *name, const char *type);
  void InputRegister(const std::string &name);
  void OptionalInputRegister(const char *name, const char *type);
  void OptionalInputRegister(const std::string &name);
  void OutputRegister(const char *name, const char *type);
  void OutputRegister(const std::string &name);
  void DynamicInputRegister(const char *name, unsigned int count, const char *type, bool push_back);
  void DynamicInputRegister(const char *name, unsigned int count, bool push_back);
  void DynamicInputRegisterByIndex(const char *name, unsigned int count, size_t index);
  void DynamicOutputRegister(const char *name, unsigned int count, const char *type, bool push_back);
  void DynamicOutputRegister(const char *name, unsigned int count, bool push_back);
  void RequiredAttrRegister(const std::string &name);
  void RequiredAttrWithTypeRegister(const char *name, const char *type);
  void DataTypeRegister(const char *name, const TensorType &type);
  void DataTypeRegister(const char *name, const Promote &type);
  void InferFuncRegister(const std::function<graphStatus(Operator &)> &function);
  void SubgraphCountRegister(const char *name, uint32_t count);
  void SetSubgraphBuilder(const char *name, uint32_t index, const std::function<Graph()> &builder);

 private:
  std::shared_ptr<OperatorState> state_;
};

class OperatorFactory {
 public:
  static Operator CreateOperator(const char *name, const char *type);
  static Operator CreateOperator(const std::string &name, const std::string &type);
  static bool IsExistOp(const char *type);
  static bool IsExistOp(const std::string &type);
};

// Empty classes: static objects of them lie side by side in the plugin, so their constructors must not write a byte.
class OperatorCreatorRegister {
 public:
  OperatorCreatorRegister(const char *type, const std::function<Operator(const AscendString &)> &creator);
  OperatorCreatorRegister(const std::string &type, const std::function<Operator(const std::string &)> &creator);
};
class InferShapeFuncRegister {
 public:
  InferShapeFuncRegister(const std::string &type, const std::function<graphStatus(Operator &)> &function);
};
}  // namespace ge
#endif
