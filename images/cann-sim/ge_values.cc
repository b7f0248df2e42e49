/* Stand-ins for the ge:: value classes: strings, shapes, descriptions and tensors. They keep what they are given. */
#include <map>

#include "ge.h"

namespace ge {
AscendString::AscendString(const char *text) : text_(text == nullptr ? nullptr : std::make_shared<std::string>(text)) {}
const char *AscendString::GetString() const { return text_ == nullptr ? "" : text_->c_str(); }
bool AscendString::operator<(const AscendString &other) const {
  return std::string(GetString()) < std::string(other.GetString());
}

Shape::Shape() : dims_(std::make_shared<std::vector<int64_t>>()) {}
Shape::Shape(const std::vector<int64_t> &dims) : dims_(std::make_shared<std::vector<int64_t>>(dims)) {}
size_t Shape::GetDimNum() const { return dims_->size(); }
int64_t Shape::GetDim(size_t index) const { return index < dims_->size() ? (*dims_)[index] : 0; }
std::vector<int64_t> Shape::GetDims() const { return *dims_; }
graphStatus Shape::SetDim(size_t index, int64_t value) {
  if (index >= dims_->size()) {
    return kFailed;
  }
  (*dims_)[index] = value;
  return kSuccess;
}

struct TensorDescState {
  Shape shape;
  Shape origin_shape;
  Format format = Format(0);
  DataType type = DataType(0);
};
TensorDesc::TensorDesc() : state_(std::make_shared<TensorDescState>()) {}
TensorDesc::TensorDesc(Shape shape, Format format, DataType type) : state_(std::make_shared<TensorDescState>()) {
  state_->shape = shape;
  state_->format = format;
  state_->type = type;
}
// A description is a value: a copy must not share later changes.
TensorDesc::TensorDesc(const TensorDesc &other) : state_(std::make_shared<TensorDescState>(*other.state_)) {}
// The moved-from object stays usable, as a copy would leave it.
TensorDesc::TensorDesc(TensorDesc &&other) : state_(std::make_shared<TensorDescState>(*other.state_)) {}
DataType TensorDesc::GetDataType() const { return state_->type; }
Format TensorDesc::GetFormat() const { return state_->format; }
Shape TensorDesc::GetShape() const { return state_->shape; }
Shape TensorDesc::GetOriginShape() const { return state_->origin_shape; }
void TensorDesc::SetDataType(DataType type) { state_->type = type; }
void TensorDesc::SetFormat(Format format) { state_->format = format; }
void TensorDesc::SetOriginFormat(Format) {}
void TensorDesc::SetShape(const Shape &shape) { state_->shape = shape; }
void TensorDesc::SetOriginShape(const Shape &shape) { state_->origin_shape = shape; }
void TensorDesc::SetPlacement(Placement) {}
void TensorDesc::SetRealDimCnt(int64_t) {}

struct TensorState {
  TensorDesc desc;
  std::vector<uint8_t> owned;
  std::shared_ptr<uint8_t> lent;  // with the deleter that came with it
  size_t size = 0;
};
Tensor::Tensor() : state_(std::make_shared<TensorState>()) {}
Tensor::Tensor(const TensorDesc &desc) : Tensor() { state_->desc = desc; }
Tensor::Tensor(const TensorDesc &desc, const uint8_t *data, size_t size) : Tensor(desc) { SetData(data, size); }
TensorDesc Tensor::GetTensorDesc() const { return state_->desc; }
uint8_t *Tensor::GetData() { return state_->lent != nullptr ? state_->lent.get() : state_->owned.data(); }
size_t Tensor::GetSize() const { return state_->size; }
graphStatus Tensor::SetData(const uint8_t *data, size_t size) {
  state_->lent.reset();
  state_->owned.clear();
  if (data != nullptr) {
    state_->owned.assign(data, data + size);
  }
  state_->size = state_->owned.size();
  return kSuccess;
}
graphStatus Tensor::SetData(uint8_t *data, size_t size, const std::function<void(uint8_t *)> &deleter) {
  state_->owned.clear();
  state_->lent = std::shared_ptr<uint8_t>(data, deleter ? deleter : [](uint8_t *) {});
  state_->size = size;
  return kSuccess;
}
graphStatus Tensor::SetData(const std::string &data) {
  return SetData(reinterpret_cast<const uint8_t *>(data.data()), data.size());
}
graphStatus Tensor::SetData(const std::vector<std::string> &) { return kFailed; }

TensorType::TensorType(const std::initializer_list<DataType> &) {}
Promote::Promote(const std::initializer_list<const char *> &) {}

// Static initialisers of the plugin put error texts into this map through inlined code, so it must be a real one and come first.
class StatusFactory {
 public:
  static StatusFactory *Instance();

 private:
  std::map<uint32_t, std::string> texts_;
  char slack_[256] = {};  // room for members that a later header may add
};
StatusFactory *StatusFactory::Instance() {
  static StatusFactory *factory = new StatusFactory();  // never freed: others' static destructors may still use it
  return factory;
}
}  // namespace ge
