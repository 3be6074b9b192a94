#include <asio/impl/src.hpp>  // The compiled part of Asio; every other file includes declarations only.
