// Loading, the tokenizer, what a model has to show, and forward passes without a look inside.
#include <fmt/format.h>

#include "core/error.h"
#include "inside/trace/project_on_vocab.h"
#include "kernels/latent_row.h"
#include "model/block_kinds.h"
#include "python/src/bindings.h"

namespace kilin::python {

Model::Model(LoadedModel loaded, const EngineOptions& options)
    : engine(std::move(loaded), options), blocks(block_kinds(engine.config())) {}

namespace {

using Name = std::optional<std::string>;
using Floats = py::array_t<float, py::array::c_style | py::array::forcecast>;
using Ids = py::array_t<int32_t, py::array::c_style | py::array::forcecast>;

std::shared_ptr<Model> load(const std::string& path, size_t threads, const Name& quantize, const Name& activations,
                            const Name& kv_type, size_t max_sequences, size_t context_tokens) {
  LoadOptions load;
  load.threads = threads;
  if (quantize) load.quantize = parse_quant_type(*quantize);
  load.needs = {.tokenizer = Need::Optional, .generation = Need::Optional};
  load.progress = [](LoadStage, uint64_t, uint64_t) { check_signals(); };
  EngineOptions options;
  options.threads = threads;
  options.max_sequences = max_sequences;
  options.pool_tokens = context_tokens;
  if (activations) options.activations = parse_activation_type(*activations);
  if (kv_type) options.kv_type = parse_kv_type(*kv_type);
  const py::gil_scoped_release release;
  options.validate();
  return std::make_shared<Model>(LoadedModel::load(path, load), options);
}

// As os.fsdecode: a name that is no text is a str all the same.
py::str text_of_path(const std::filesystem::path& path) {
  const std::string& bytes = path.native();
  return py::reinterpret_steal<py::str>(PyUnicode_DecodeFSDefaultAndSize(bytes.data(), static_cast<Py_ssize_t>(bytes.size())));
}

const Tokenizer& tokenizer(const Model& model) { return model.engine.loaded().require_tokenizer(); }

py::dict config(const Model& model) {
  const ModelConfig& c = model.engine.config();
  py::dict d;
  d["vocab_size"] = c.vocab_size;
  d["hidden_size"] = c.hidden_size;
  d["num_hidden_layers"] = c.num_hidden_layers;
  d["model_max_length"] = c.model_max_length;
  d["num_attention_heads"] = c.num_attention_heads;
  d["num_heads"] = c.kda_num_heads;
  d["head_dim"] = c.kda_head_dim;
  d["num_experts"] = c.num_experts;
  d["num_experts_per_token"] = c.num_experts_per_token;
  py::list attention, feed_forward;
  for (size_t layer = 0; layer < c.num_hidden_layers; ++layer) {
    attention.append(c.is_kda(layer) ? "kda" : "mla");
    feed_forward.append(c.is_moe(layer) ? "moe" : "dense");
  }
  d["attention"] = attention;
  d["feed_forward"] = feed_forward;
  return d;
}

py::list support_of(const Model& model) {
  py::list all;
  for (const OfferedValue& o : support(model.blocks)) {
    py::dict d;
    d["name"] = o.name;
    d["shape"] = std::string(o.shape);
    d["writable"] = o.writable;
    d["staged"] = o.staged;
    all.append(d);
  }
  return all;
}

py::array logits(Model& model, const Ids& prompt) {
  const std::vector<int32_t> ids = ids_of(prompt);
  const size_t vocab = model.engine.config().vocab_size;
  py::array_t<float> out({ids.size(), vocab});
  float* data = out.mutable_data();
  const py::gil_scoped_release release;
  const auto copy = [&](size_t position, MatView<const float> rows) {
    for (size_t r = 0; r < rows.rows(); ++r) std::ranges::copy(rows[r], data + (position + r) * vocab);
  };
  model.engine.logits(ids, copy, check_signals);
  return out;
}

py::array project(Model& model, const Floats& stream) {
  if (stream.ndim() != 2) raise(ErrorCode::InvalidArgument, "the stream has {} dimensions; expected 2", stream.ndim());
  const auto rows = static_cast<size_t>(stream.shape(0)), cols = static_cast<size_t>(stream.shape(1));
  const size_t vocab = model.engine.config().vocab_size;
  py::array_t<float> out({rows, vocab});
  const MatView<const float> in(stream.data(), rows, cols);
  const MatView<float> to(out.mutable_data(), rows, vocab);
  constexpr size_t kRowsAtOnce = 256;  // between two looks at signals
  const py::gil_scoped_release release;
  for (size_t row = 0; row < rows; row += kRowsAtOnce) {
    const size_t end = std::min(rows, row + kRowsAtOnce);
    project_on_vocab(model.engine, in.rows(row, end), to.rows(row, end));
    check_signals();
  }
  return out;
}

}  // namespace

void bind_model(py::module_& m) {
  m.def("load", &load, py::arg("path"), py::arg("threads"), py::arg("quantize"), py::arg("activations"), py::arg("kv_type"),
        py::arg("max_sequences"), py::arg("context_tokens"));
  py::class_<Model, std::shared_ptr<Model>>(m, "Model")
      .def_property_readonly("path", [](const Model& model) { return text_of_path(model.engine.loaded().path()); })
      .def_property_readonly("threads", [](const Model& model) { return model.engine.threads(); })
      .def_property_readonly("warnings",
                             [](const Model& model) {
                               std::vector<std::string> shown;
                               for (const std::string& warning : model.engine.loaded().warnings)
                                 shown.push_back(displayable(warning));
                               return shown;
                             })
      .def_property_readonly("context_tokens", [](const Model& model) { return model.engine.max_sequence_tokens(); })
      .def_property_readonly("stop_ids", [](const Model& model) { return model.engine.loaded().stop_ids; })
      .def("config", &config)
      .def("support", &support_of)
      .def("find",
           [](const Model& model, const std::string& name) { return name_of(find_site(name, model.blocks), model.blocks); })
      .def("encode", [](const Model& model, const std::string& text) { return tokenizer(model).encode(text); })
      .def("encode_with_specials",
           [](const Model& model, const std::string& text) { return tokenizer(model).encode_with_specials(text); })
      .def("decode",
           [](const Model& model, const std::vector<int32_t>& ids) { return py::bytes(tokenizer(model).decode(ids)); })
      .def("logits", &logits)
      .def("project_on_vocab", &project);
}

}  // namespace kilin::python
