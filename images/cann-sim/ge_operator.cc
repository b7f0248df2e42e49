/* Stand-ins for ge::Operator, its factory and its registers. An operator knows its name and type; nothing else is used, because
 * in simulation MindSpore builds operators of the legacy path but does not compile or launch them. */
#include "ge.h"

namespace ge {
struct OperatorState {
  std::string name;
  std::string type;
};
struct GraphState {
  std::string name;
};

namespace {
std::string Text(const char *text) { return text == nullptr ? std::string() : std::string(text); }
}  // namespace

Operator::Operator(const std::string &type) : Operator(std::string(), type) {}
Operator::Operator(const char *type) : Operator(std::string(), Text(type)) {}
Operator::Operator(const char *name, const char *type) : Operator(Text(name), Text(type)) {}
Operator::Operator(const AscendString &name, const AscendString &type)
    : Operator(std::string(name.GetString()), std::string(type.GetString())) {}
Operator::Operator(const std::string &name, const std::string &type) : state_(std::make_shared<OperatorState>()) {
  state_->name = name;
  state_->type = type;
}

std::string Operator::GetName() const { return state_ == nullptr ? std::string() : state_->name; }
std::string Operator::GetOpType() const { return state_ == nullptr ? std::string() : state_->type; }
graphStatus Operator::GetName(AscendString &name) const {
  name = AscendString(GetName().c_str());
  return kSuccess;
}
graphStatus Operator::GetOpType(AscendString &type) const {
  type = AscendString(GetOpType().c_str());
  return kSuccess;
}
TensorDesc Operator::GetOutputDesc(const std::string &) const { return TensorDesc(); }
TensorDesc Operator::GetOutputDesc(uint32_t) const { return TensorDesc(); }
int Operator::GetDynamicOutputNum(const std::string &) const { return 0; }

Operator &Operator::AddControlInput(const Operator &) { return *this; }
Operator &Operator::SetInput(const char *, const Operator &) { return *this; }
Operator &Operator::SetInput(const char *, uint32_t, const Operator &) { return *this; }
Operator &Operator::SetInput(const char *, uint32_t, const Operator &, const char *) { return *this; }
Operator &Operator::SetInput(const std::string &, const Operator &) { return *this; }
Operator &Operator::SetInput(const std::string &, const Operator &, const std::string &) { return *this; }
graphStatus Operator::UpdateInputDesc(const char *, const TensorDesc &) { return kSuccess; }
graphStatus Operator::UpdateInputDesc(const std::string &, const TensorDesc &) { return kSuccess; }
graphStatus Operator::UpdateOutputDesc(const char *, const TensorDesc &) { return kSuccess; }
graphStatus Operator::UpdateOutputDesc(const std::string &, const TensorDesc &) { return kSuccess; }
graphStatus Operator::UpdateDynamicOutputDesc(const char *, uint32_t, const TensorDesc &) { return kSuccess; }

// Attributes are accepted and dropped; asking for one says that it is not there.
#define HYPER_REPRO_DEFINE(NAME, VALUE, RESULT)                        \
  Operator &Operator::SetAttr(NAME, VALUE) { return *this; }           \
  graphStatus Operator::GetAttr(NAME, RESULT) const { return kFailed; }
HYPER_REPRO_ATTRIBUTES(HYPER_REPRO_DEFINE)
#undef HYPER_REPRO_DEFINE
#define HYPER_REPRO_DEFINE(NAME, VALUE) \
  Operator &Operator::SetAttr(NAME, VALUE) { return *this; }
HYPER_REPRO_SET_ONLY(HYPER_REPRO_DEFINE)
#undef HYPER_REPRO_DEFINE
#define HYPER_REPRO_DEFINE(VALUE) \
  void Operator::AttrRegister(const char *, VALUE) {}
HYPER_REPRO_REGISTERED(HYPER_REPRO_DEFINE)
#undef HYPER_REPRO_DEFINE

void Operator::InputRegister(const char *, const char *) {}
void Operator::InputRegister(const std::string &) {}
void Operator::OptionalInputRegister(const char *, const char *) {}
void Operator::OptionalInputRegister(const std::string &) {}
void Operator::OutputRegister(const char *, const char *) {}
void Operator::OutputRegister(const std::string &) {}
void Operator::DynamicInputRegister(const char *, unsigned int, const char *, bool) {}
void Operator::DynamicInputRegister(const char *, unsigned int, bool) {}
void Operator::DynamicInputRegisterByIndex(const char *, unsigned int, size_t) {}
void Operator::DynamicOutputRegister(const char *, unsigned int, const char *, bool) {}
void Operator::DynamicOutputRegister(const char *, unsigned int, bool) {}
void Operator::RequiredAttrRegister(const std::string &) {}
void Operator::RequiredAttrWithTypeRegister(const char *, const char *) {}
void Operator::DataTypeRegister(const char *, const TensorType &) {}
void Operator::DataTypeRegister(const char *, const Promote &) {}
void Operator::InferFuncRegister(const std::function<graphStatus(Operator &)> &) {}
void Operator::SubgraphCountRegister(const char *, uint32_t) {}
void Operator::SetSubgraphBuilder(const char *, uint32_t, const std::function<Graph()> &) {}

Operator OperatorFactory::CreateOperator(const char *name, const char *type) { return Operator(name, type); }
Operator OperatorFactory::CreateOperator(const std::string &name, const std::string &type) { return Operator(name, type); }
bool OperatorFactory::IsExistOp(const char *) { return false; }
bool OperatorFactory::IsExistOp(const std::string &) { return false; }

OperatorCreatorRegister::OperatorCreatorRegister(const char *, const std::function<Operator(const AscendString &)> &) {}
OperatorCreatorRegister::OperatorCreatorRegister(const std::string &, const std::function<Operator(const std::string &)> &) {}
InferShapeFuncRegister::InferShapeFuncRegister(const std::string &, const std::function<graphStatus(Operator &)> &) {}

Graph::Graph(const char *name) : Graph(Text(name)) {}
Graph::Graph(const std::string &name) : state_(std::make_shared<GraphState>()) { state_->name = name; }
}  // namespace ge
