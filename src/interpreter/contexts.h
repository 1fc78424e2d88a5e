// All contexts of the sandbox, and which one a language means. Thread-safe.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/guarded.h"
#include "guest/core.h"
#include "interpreter/context.h"

namespace hearth::interpreter {

class Contexts {
 public:
  // Default contexts of Python and JavaScript are there from the start, their kernels are not.
  explicit Contexts(guest::Core& core);
  Contexts(const Contexts&) = delete;
  Contexts& operator=(const Contexts&) = delete;
  ~Contexts();

  using Shared = std::shared_ptr<Context>;

  // An empty directory is the default one. Throws Error: exhausted, invalid (language, directory).
  Shared make(const std::string& language, const std::string& directory);
  // Throws Error(not_found).
  Shared get(const std::string& id) const;
  // Made at its first use.
  Shared default_for(const std::string& language);
  std::vector<Shared> list() const;
  // Throws Error(not_found).
  void remove(const std::string& id);

  // Starts Python in the background, the first time it is called.
  void warm_up();

 private:
  struct All {
    std::vector<Shared> contexts;                 // in the order they were made
    std::map<std::string, std::string> defaults;  // by language: an id
    bool warmed_up = false;
  };

  Shared make_context(const std::string& language, const std::string& directory) const;
  static void add(All& all, const Shared& context);

  guest::Core& core_;
  Guarded<All> all_;
  std::thread warmer_;
};

}  // namespace hearth::interpreter
