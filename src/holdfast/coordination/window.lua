-- How long a tenant that was refused has to wait, by the window that it was refused for. Atomic, as every script is.
--
--   note: ARGV = 'note', trusted (µs), at, rate, window, number of the latest slice, costs (latest first, commas between)
--         What a ledger in the database held at `at`. The latest is kept, and only for a moment.
--   ask:  ARGV = 'ask', trusted (µs), cost
--         nothing: ask the database. Otherwise {spent, µs to wait, rate, window}: the database would refuse this too.
--
-- The window slides as in holdfast/policy/admission.py: the slice of now and the sixty before it count. What was accepted
-- since `at` is not known here, so it can refuse too little and never too much. Time passes by this server's clock from
-- when the note was taken; nobody's clocks are compared.

local SLICES = 60
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local trusted = tonumber(ARGV[2])

if ARGV[1] == 'note' then
  local known = redis.call('HMGET', KEYS[1], 'at', 'noted')
  if known[1] and tonumber(known[1]) > tonumber(ARGV[3]) and now - tonumber(known[2]) <= trusted then
    return 0
  end
  redis.call('HSET', KEYS[1], 'at', ARGV[3], 'noted', string.format('%.0f', now),
             'rate', ARGV[4], 'window', ARGV[5], 'newest', ARGV[6], 'costs', ARGV[7])
  redis.call('PEXPIRE', KEYS[1], math.ceil(trusted / 1000))
  return 1
end

local found = redis.call('HMGET', KEYS[1], 'at', 'noted', 'rate', 'window', 'newest', 'costs')
if not found[6] then
  return false
end
local passed = now - tonumber(found[2])
if passed < 0 or passed > trusted then
  return false
end
local at = tonumber(found[1]) + passed
local rate, window, newest = tonumber(found[3]), tonumber(found[4]), tonumber(found[5])
local cost = tonumber(ARGV[3])
if cost > rate then -- never passes, which the database says in other words
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
