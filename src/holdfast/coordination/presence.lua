-- Which workers are there: one hash, so that what is evicted or flushed is gone as a whole and seen to be.
--
--   beat:  ARGV = 'beat', id, lease (µs), info as JSON ('' if it is known)
--   leave: ARGV = 'leave', id
--   seed:  ARGV = 'seed', trusted (µs), then for each worker of the database: id, µs since it began, µs since it was last
--          heard of, µs until its lease ends, info
--   list:  nothing, if the database must be asked; otherwise now, and for each worker: when it began, when it was last
--          heard of, when its lease ends, info
--
-- Times are this server's. A list is complete for a moment after the database was read, since whoever could not tell this
-- server that it came is not in it; and as long as all who are in it are heard of.

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local function whole(number) return string.format('%.0f', number) end
local function keep(id, began, heard, ends, info)
  redis.call('HSET', KEYS[1], id, cjson.encode({whole(began), whole(heard), whole(ends), info}))
end

if ARGV[1] == 'beat' then
  local known = redis.call('HGET', KEYS[1], ARGV[2])
  local began, info = now, ARGV[4]
  if info == '' then
    if not known then
      redis.call('HDEL', KEYS[1], 'complete')
      return 0
    end
    local row = cjson.decode(known)
    began, info = tonumber(row[1]), row[4]
  end
  keep(ARGV[2], began, now, now + tonumber(ARGV[3]), info)
  return 1
end

if ARGV[1] == 'leave' then
  return redis.call('HDEL', KEYS[1], ARGV[2])
end

if ARGV[1] == 'seed' then
  redis.call('DEL', KEYS[1])
  for at = 3, #ARGV, 5 do
    keep(ARGV[at], now - tonumber(ARGV[at + 1]), now - tonumber(ARGV[at + 2]), now + tonumber(ARGV[at + 3]), ARGV[at + 4])
  end
  redis.call('HSET', KEYS[1], 'complete', whole(now + tonumber(ARGV[2])))
  redis.call('EXPIRE', KEYS[1], 86400)
  return 1
end

local rows = redis.call('HGETALL', KEYS[1])
local found, complete = {whole(now)}, false
for at = 1, #rows, 2 do
  if rows[at] == 'complete' then
    complete = tonumber(rows[at + 1]) > now
  else
    local row = cjson.decode(rows[at + 1])
    if tonumber(row[3]) <= now then
      return false
    end
    for index = 1, 4 do
      found[#found + 1] = row[index]
    end
  end
end
return complete and found
