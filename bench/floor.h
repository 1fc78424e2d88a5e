// The least that a create and its first command can cost whoever keeps what it acknowledged and
// starts what it was asked for: one record that outlives this process before the answer (not the
// machine's power, as sandboxes do not either), and one program whose first byte is waited for. No
// API, no objects, no isolation.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "linux/fd.h"

namespace hearth::bench {

class Floor {
 public:
  // Answers creates with so many bytes, and runs `program` for commands. Its record is a file
  // without a name, where engines of benchmarks have their state. Nobody else may have children in
  // this process: they are reaped by the kernel.
  Floor(std::size_t create_bytes, std::string program);

  // Of requests as E2B's clients send them. Valid until the next one.
  std::string_view answer(std::string_view request);

 private:
  void keep_record() const;
  void start_program() const;

  std::string program_;
  std::string created_;
  std::string started_;
  linux::Fd record_;
};

}  // namespace hearth::bench
