#include "apiserver/catalogue.h"
#include "apiserver/strategy.h"
