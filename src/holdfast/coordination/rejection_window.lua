-- Rate window of a tenant that the database rejected: decides whether it would reject again. Scripts are atomic.
--
--   store:  ARGV = 'store', lifetime (µs), at, rate, window, number of the newest slice, costs (newest first, separated
--           by commas). Stores the window as it was in the database at `at`, unless a newer one is stored.
--   lookup: ARGV = 'lookup', lifetime (µs), cost. Returns nil if the database must decide, else
--           {spent, µs to wait, rate, window}: the database would reject.
--
-- The window slides as in holdfast/policy/quotas.py: the current slice and the sixty before it are added up. Jobs
-- accepted after `at` are not known here, so the script may reject too little but never too much. The time since `at` is
-- measured by the clock of this server alone; clocks of different machines are never compared.

local SLICES = 60
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local lifetime = tonumber(ARGV[2])

if ARGV[1] == 'store' then
  local known = redis.call('HMGET', KEYS[1], 'at', 'stored_at')
  if known[1] and tonumber(known[1]) > tonumber(ARGV[3]) and now - tonumber(known[2]) <= lifetime then
    return 0
  end
  redis.call('HSET', KEYS[1], 'at', ARGV[3], 'stored_at', string.format('%.0f', now),
             'rate', ARGV[4], 'window', ARGV[5], 'newest', ARGV[6], 'costs', ARGV[7])
  redis.call('PEXPIRE', KEYS[1], math.ceil(lifetime / 1000))
  return 1
end

local found = redis.call('HMGET', KEYS[1], 'at', 'stored_at', 'rate', 'window', 'newest', 'costs')
if not found[6] then
  return false
end
local passed = now - tonumber(found[2])
if passed < 0 or passed > lifetime then
  return false
end
local at = tonumber(found[1]) + passed
local rate, window, newest = tonumber(found[3]), tonumber(found[4]), tonumber(found[5])
local cost = tonumber(ARGV[3])
if cost > rate then -- can never pass; the database has a different error for it
  return false
end

local width = math.ceil(window / SLICES)
local gone = math.max(0, math.floor(at / width) - newest)
local costs, spent, age = {}, 0, 0
for text in string.gmatch(found[6], '%d+') do
  if age + gone <= SLICES then
    costs[#costs + 1] = tonumber(text)
    spent = spent + costs[#costs]
  end
  age = age + 1
end
local must_leave = spent + cost - rate
if must_leave <= 0 then
  return false
end
for index = #costs, 1, -1 do
  must_leave = must_leave - costs[index]
  if must_leave <= 0 then
    return {spent, (newest - (index - 1) + SLICES + 1) * width - at, rate, window}
  end
end
return false
