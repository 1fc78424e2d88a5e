// The folder where keys and certificates are kept: only its owner may look inside, and a file in it
// is whole or not there.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "linux/fd.h"

namespace hearth::pki {

class Folder {
 public:
  // Made (0700) if it is not there. Locked against other processes for as long as this lives.
  explicit Folder(const std::string& path);

  std::optional<std::string> find(const std::string& name) const;
  // Mode 0600. Durably: for what cannot be made again.
  void keep(const std::string& name, std::string_view text) const;
  void keep_durably(const std::string& name, std::string_view text) const;
  // For messages.
  std::string path_of(std::string_view name) const { return path_ + "/" + std::string(name); }

 private:
  std::string path_;
  linux::Fd fd_;
};

}  // namespace hearth::pki
