//! door-redis
