// The images that are on this machine: unpacked layers, and the records that make images of them.
//
//   STORE/layers/<hex of the diff id>/fs    the files, owners as the image says (0 .. 65535)
//   STORE/layers/<hex of the diff id>/meta  what it takes up
//   STORE/images/<name>                     one record an image
//   STORE/tmp/                              half-made and half-removed things, swept at start
//
// A layer appears under layers/ by one rename, after everything in it has reached the disk: what is
// there is whole. Archives are unpacked and folders copied by confined helper processes
// (cmd/hearth-unpack), never here; nothing in this room parses an archive or follows a path that an
// image controls.
//
// Thread-safe. add_...() block for as long as the work takes, all others briefly (collect_garbage()
// for as long as deleting takes). Everything throws Error: invalid (the archive or the request is
// broken), exhausted (quota or disk full), not_found, conflict, timeout, unavailable (the caller
// hung up), internal. What fails leaves nothing behind.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "image/image.h"
#include "image/lease.h"
#include "image/store_folder.h"
#include "linux/namespaces.h"

namespace hearth::image {

struct StoreOptions {
  // Root's own, mode 0700, on a file system with idmapped mounts and user xattrs, opened in the
  // mount namespace that the store is used in. Borrowed: the store keeps a duplicate.
  int folder_fd = -1;
  std::string unpack_program;     // hearth-unpack, beside hearth-runtime
  linux::IdRange helper_ids;      // 65,536 ids that no sandbox and no user has
  std::uint64_t quota_bytes = 0;  // for all layers together; 0: no limit but the disk
};

struct StoreUsage {
  std::size_t images = 0;
  std::size_t layers = 0;
  std::uint64_t bytes = 0;  // of all layers
  std::uint64_t quota_bytes = 0;
};

struct Collected {
  std::vector<std::string> layers;  // diff ids
  std::uint64_t bytes = 0;
};

class Store {
 public:
  // Makes the folders that are missing, sweeps tmp/, reads what is there. Records that cannot be
  // read, and images whose layers are not all there, are logged and left out.
  explicit Store(const StoreOptions& options);
  ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  // How many half-made things of an earlier life the start removed.
  std::size_t swept() const { return swept_; }

  bool has_layer(const std::string& diff_id) const;

  // Unpacks an archive; does nothing if blob.diff_id is here. Whoever adds the same layer at the
  // same time waits for the first. `blob_fd` must be a file if blob.digest is given (it is read
  // twice: nothing is parsed before the digest is right), otherwise a pipe will do; it is read from
  // where it stands. When the other end of the socket `caller_fd` hangs up, work stops
  // (unavailable). The lease holds one layer; keep it until put_image().
  Lease add_layer(int blob_fd, const LayerBlob& blob, int caller_fd = -1);

  // Copies a root file system folder. Reads with root's rights over files of ids 0 .. 65535: only
  // for callers that are root; others send an archive. Stays on the folder's file system. Sockets
  // and device nodes are left out. The layer's id is random: nobody else's digest could match it.
  Lease add_folder(int dir_fd, int caller_fd = -1);

  // Copies the upper folder of a sandbox's overlay (mounted with userxattr; frozen, or what is
  // copied is a mixture). Owner owner.first + n is stored as n; owners outside the range become
  // 65534. Whiteouts and opaque folders stay what they are, other marks of overlayfs and sockets
  // are left out, hard links and holes are kept. Random id, as above.
  Lease add_upper(int upper_dir_fd, linux::IdRange owner, int caller_fd = -1);

  // Adds or replaces by name. Throws invalid for names and ids that are none, not_found for a layer
  // that is not here. `bytes` is filled in by the store.
  void put_image(Image image);

  // By name, by id ("sha256:..." or its 64 digits), or by 6 or more first digits of an id. Throws
  // conflict when those digits fit several ids.
  std::optional<Image> find(std::string_view name_or_id) const;
  std::vector<Image> list() const;  // by name

  // True when it was there. Its layers stay until they are collected.
  bool remove(const std::string& name);

  // Holds layers, all or none: not_found naming the first that is not here. Bottom first, like
  // Image::layers; one layer may be named twice.
  Lease use(const std::vector<std::string>& layers);

  // Removes layers that no image names and no lease holds.
  Collected collect_garbage();

  // Where a layer's files are, for linux::clone_mount() in this process: "/proc/self/fd/...". Valid
  // while the layer is leased. Throws not_found.
  std::string layer_path(const std::string& diff_id) const;

  // What a layer takes up. Throws not_found.
  std::uint64_t layer_bytes(const std::string& diff_id) const;
  StoreUsage usage() const;

 private:
  struct Layer {
    std::uint64_t bytes = 0;
    std::weak_ptr<const Lease::Pin> pin;  // alive: leased
  };
  struct Finished {
    std::string diff_id;
    std::uint64_t bytes = 0;
  };

  // Those that end in _locked are called with mutex_ held.
  void pin_locked(Layer& layer, const std::string& diff_id, Lease& lease);
  std::optional<Lease> find_locked(const std::string& diff_id);
  std::set<std::string> needed_layers_locked() const;
  std::uint64_t used_bytes_locked() const;
  // The layer if it is here, after waiting for whoever adds it. Nothing: the caller is to add it,
  // and has the turn until it calls end_turn().
  std::optional<Lease> find_or_take_turn(const std::string& diff_id);
  std::optional<Lease> find_layer(const std::string& diff_id);
  void end_turn(const std::string& diff_id);
  // What a new layer may take up, if all garbage were collected.
  std::uint64_t room() const;
  Lease unpack(int blob_fd, const LayerBlob& blob, int caller_fd);
  Lease copy(int dir_fd, linux::IdRange owner, bool overlay_marks, int caller_fd);
  Lease publish(HalfMade half_made, const Finished& finished);
  std::optional<Lease> try_publish(HalfMade& half_made, const Finished& finished);

  const std::string unpack_program_;
  const linux::IdRange helper_ids_;
  const std::uint64_t quota_bytes_;
  StoreFolder folder_;
  std::size_t swept_ = 0;

  // Held while a record is written and the table follows: writers of records take turns.
  std::mutex records_mutex_;
  // Guards all below, and that a layer is on disk if and only if it is in the table: renames into
  // and out of layers/ happen with it held.
  mutable std::mutex mutex_;
  std::condition_variable turn_ended_;
  std::map<std::string, Layer> layers_;  // by diff id
  std::map<std::string, Image> images_;  // by name
  std::set<std::string> turns_;          // diff ids being added
};

}  // namespace hearth::image
