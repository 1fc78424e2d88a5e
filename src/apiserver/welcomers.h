// Who is asked about new objects before they are kept (client/welcome.h), by kind.
#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "client/welcome.h"

namespace hearth::apiserver {

// Thread-safe.
class Welcomers {
  struct Host;

 public:
  // As long as it lives, who is asked is there to be asked. Must not outlive the welcomers.
  class Visit {
   public:
    Visit(Welcomers& all, const std::string& kind);
    Visit(const Visit&) = delete;
    Visit& operator=(const Visit&) = delete;
    ~Visit();

    bool is_in_vain() const { return host_ == nullptr; }  // nobody is to be asked
    std::optional<client::Welcome> ask(const client::Json& object) const;

   private:
    Welcomers& all_;
    std::shared_ptr<Host> host_;  // null: there is none
  };

  // Empty: nobody. Returns when the last has left who still asks whoever was there before; others
  // who come meanwhile do not delay it.
  void set(const std::string& kind, client::Welcomer welcomer);

 private:
  std::mutex mutex_;  // guards what follows, and what is in the hosts
  std::condition_variable left_;
  std::map<std::string, std::shared_ptr<Host>, std::less<>> hosts_;
};

}  // namespace hearth::apiserver
