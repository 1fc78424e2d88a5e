// Every message that is sent or received as such. The codec is compiled for these.
#pragma once

#include "envd/filesystem_messages.h"
#include "envd/input_messages.h"
#include "envd/process_messages.h"
#include "envd/watch_messages.h"

#define HEARTH_ENVD_MESSAGES(X) \
  X(Empty)                      \
  X(ListResponse)               \
  X(StartRequest)               \
  X(ProcessResponse)            \
  X(SelectRequest)              \
  X(UpdateRequest)              \
  X(SendInputRequest)           \
  X(StreamInputRequest)         \
  X(SendSignalRequest)          \
  X(PathRequest)                \
  X(MoveRequest)                \
  X(ListDirRequest)             \
  X(EntryInfo)                  \
  X(EntryResponse)              \
  X(ListDirResponse)            \
  X(WatchRequest)               \
  X(WatchDirResponse)           \
  X(WatcherId)                  \
  X(WatcherEventsResponse)
