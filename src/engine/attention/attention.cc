#include "engine/attention/attention.h"

#include <atomic>
#include <mutex>

#include "base/worker_team.h"
#include "engine/attention/kernels.h"
#include "engine/attention/node.h"
#include "engine/attention/openmp_abi.h"
#include "ggml-backend-impl.h"
#include "ggml-cpu.h"

// The boilerplate that makes NodeComputer a backend: one registry entry, one device of type ACCEL, and an instance for
// each context. Tensors stay in the CPU's buffers.
namespace fermata::attention {
namespace {

constexpr char kBackendName[] = "FERMATA";

std::atomic<std::uint64_t> g_nodes{0};
thread_local const PositionTable* t_bound = nullptr;

const Kernels* best_kernels() {
  static const Kernels* const best = [] {
    const auto usable = usable_kernels();
    return usable.empty() ? nullptr : usable.front();
  }();
  return best;
}

NodeComputer& computer_of(ggml_backend_t backend) { return *static_cast<NodeComputer*>(backend->context); }

ggml_status compute_graph(ggml_backend_t backend, ggml_cgraph* graph) {
  for (int i = 0; i < ggml_graph_n_nodes(graph); ++i) {
    ggml_tensor* node = ggml_graph_node(graph, i);
    if (node->op != GGML_OP_FLASH_ATTN_EXT || (node->flags & GGML_TENSOR_FLAG_COMPUTE) == 0) continue;
    g_nodes.fetch_add(1, std::memory_order_relaxed);
    const ggml_status status = computer_of(backend).compute(node);
    if (status != GGML_STATUS_SUCCESS) return status;
  }
  return GGML_STATUS_SUCCESS;
}

ggml_guid_t guid() {
  static ggml_guid value = {0x66, 0x65, 0x72, 0x6d, 0x61, 0x74, 0x61, 0x2e,
                            0x61, 0x74, 0x74, 0x6e, 0x2e, 0x30, 0x30, 1};
  return &value;
}

ggml_backend_t begin_backend(ggml_backend_dev_t device, const char* /*params*/) {
  auto* backend = new ggml_backend{};
  backend->guid = guid();
  backend->iface.get_name = [](ggml_backend_t) { return kBackendName; };
  backend->iface.free = [](ggml_backend_t self) {
    delete &computer_of(self);
    delete self;
  };
  backend->iface.graph_compute = compute_graph;
  backend->device = device;
  backend->context = new NodeComputer(*best_kernels(), t_bound, WorkerTeam::process().n_threads());
  return backend;
}

bool supports_op(ggml_backend_dev_t, const ggml_tensor* node) {
  switch (node->op) {
    case GGML_OP_NONE:
    case GGML_OP_RESHAPE:
    case GGML_OP_VIEW:
    case GGML_OP_PERMUTE:
    case GGML_OP_TRANSPOSE: return true;
    case GGML_OP_FLASH_ATTN_EXT: return supports(node);
    default: return false;
  }
}

ggml_backend_device_i device_interface() {
  ggml_backend_device_i device{};
  device.get_name = [](ggml_backend_dev_t) { return kBackendName; };
  device.get_description = [](ggml_backend_dev_t) { return "row-invariant attention on the CPU"; };
  device.get_memory = [](ggml_backend_dev_t, std::size_t* free, std::size_t* total) { *free = *total = 0; };
  device.get_type = [](ggml_backend_dev_t) { return GGML_BACKEND_DEVICE_TYPE_ACCEL; };
  device.get_props = [](ggml_backend_dev_t self, ggml_backend_dev_props* props) {
    props->name = self->iface.get_name(self);
    props->description = self->iface.get_description(self);
    props->type = GGML_BACKEND_DEVICE_TYPE_ACCEL;
    props->memory_free = props->memory_total = 0;
    props->caps = {};
    props->caps.buffer_from_host_ptr = true;
  };
  device.init_backend = begin_backend;
  device.get_buffer_type = [](ggml_backend_dev_t) { return ggml_backend_cpu_buffer_type(); };
  device.buffer_from_host_ptr = [](ggml_backend_dev_t, void* data, std::size_t size, std::size_t) {
    return ggml_backend_cpu_buffer_from_ptr(data, size);
  };
  device.supports_op = supports_op;
  device.supports_buft = [](ggml_backend_dev_t, ggml_backend_buffer_type_t type) {
    return ggml_backend_buft_is_host(type);
  };
  return device;
}

ggml_backend_dev_t the_device(ggml_backend_reg_t registry, std::size_t /*index*/) {
  static ggml_backend_device device{device_interface(), registry, nullptr};
  return &device;
}

// libllama asks every backend for these two names.
void* function_named(ggml_backend_reg_t, const char* name) {
  if (std::string_view(name) == "ggml_backend_set_n_threads") {
    return reinterpret_cast<void*>(
        +[](ggml_backend_t backend, int n_threads) { computer_of(backend).set_n_threads(n_threads); });
  }
  if (std::string_view(name) == "ggml_backend_set_abort_callback") {
    return reinterpret_cast<void*>(+[](ggml_backend_t backend, ggml_abort_callback callback, void* data) {
      computer_of(backend).set_abort(callback, data);
    });
  }
  return nullptr;
}

ggml_backend_reg_t the_registry() {
  static ggml_backend_reg registry = [] {
    ggml_backend_reg_i interface {};
    interface.get_name = [](ggml_backend_reg_t) { return kBackendName; };
    interface.get_device_count = [](ggml_backend_reg_t) { return std::size_t{1}; };
    interface.get_device = the_device;
    interface.get_proc_address = function_named;
    return ggml_backend_reg{GGML_BACKEND_API_VERSION, interface, nullptr};
  }();
  return &registry;
}

}  // namespace

bool available() { return best_kernels() != nullptr; }

std::string instruction_set() { return available() ? best_kernels()->name : "none"; }

void register_backend() {
  static std::once_flag once;
  std::call_once(once, [] {
    openmp_regions();  // keeps our OpenMP in the link
    if (available()) ggml_backend_register(the_registry());
  });
}

BindScope::BindScope(const PositionTable* table) : previous_(t_bound) { t_bound = table; }
BindScope::~BindScope() { t_bound = previous_; }

std::uint64_t nodes_computed() { return g_nodes.load(std::memory_order_relaxed); }

}  // namespace fermata::attention
