# Sidekiq: bulk, scheduled, failing and dead jobs, queues in their order, the API of its web pages, and workers that are stopped under a job. The file is the
# module of the workers too. Its last argument is the port.
require 'sidekiq'
require 'sidekiq/api'

Redis.sadd_returns_boolean = false

PORT = Integer(ENV['REDIS_DOOR'] || ARGV.last)
ENV['REDIS_DOOR'] = PORT.to_s
SERVER = { url: "redis://127.0.0.1:#{PORT}/5" }.freeze
Sidekiq.configure_client { |config| config.redis = SERVER }
Sidekiq.configure_server do |config|
  config.redis = SERVER
  config.options[:poll_interval_average] = 1
end

def redis(&block)
  Sidekiq.redis(&block)
end

class Add
  include Sidekiq::Worker
  def perform(number)
    redis { |server| server.incrby('sum', number) && server.rpush('done', jid) }
  end
end

class Failing
  include Sidekiq::Worker
  sidekiq_options retry: 3
  def perform(times)
    try = redis { |server| server.incr("tries:#{jid}") }
    raise "try #{try}" if try <= times

    redis { |server| server.rpush('done', jid) }
  end
end

class Dying
  include Sidekiq::Worker
  sidekiq_options retry: 0
  def perform
    raise 'it never works'
  end
end

# Says that it has begun, and goes on when somebody opens its gate.
class Holding
  include Sidekiq::Worker
  def perform
    redis { |server| server.rpush('begun', jid) }
    sleep 0.01 until redis { |server| server.lpop("gate:#{jid}") }
    redis { |server| server.rpush('done', jid) }
  end
end

class Urgent
  include Sidekiq::Worker
  sidekiq_options queue: 'critical'
  def perform(name)
    redis { |server| server.rpush('order', name) }
  end
end

class Usual < Urgent
  sidekiq_options queue: 'default'
end

return unless $PROGRAM_NAME == __FILE__

$passed = $failed = 0

def equal(name, found, expected)
  if found == expected
    $passed += 1
  else
    $failed += 1
    puts "FAILED #{name}: found #{found.inspect}, expected #{expected.inspect}"
  end
end

def wait_for(name, seconds = 20)
  give_up = Process.clock_gettime(Process::CLOCK_MONOTONIC) + seconds
  until (value = yield)
    if Process.clock_gettime(Process::CLOCK_MONOTONIC) > give_up
      $failed += 1
      puts "FAILED #{name}: it has not come in time"
      return nil
    end
    sleep 0.02
  end
  value
end

def done
  redis { |server| server.lrange('done', 0, -1) }
end

LOG = File.expand_path('target/clients/sidekiq.log')
require 'fileutils'
FileUtils.mkdir_p(File.dirname(LOG))
File.write(LOG, '')

def worker(threads)
  spawn('sidekiq', '-r', File.expand_path(__FILE__), '-c', threads.to_s, '-t', '3', '-q', 'critical', '-q', 'default', out: [LOG, 'a'], err: [LOG, 'a'])
end

def stop(pid, signal = 'TERM')
  Process.kill(signal, pid)
  Process.wait(pid)
end

redis(&:flushall)

# Jobs that wait for a worker, in the API.
first = Add.perform_async(1)
equal('a queue has its job', [Sidekiq::Queue.new.size, Sidekiq::Queue.new.find_job(first).args], [1, [1]])
equal('a job leaves the queue', [Sidekiq::Queue.new.find_job(first).delete, Sidekiq::Queue.new.size], [true, 0])
later = Add.perform_in(3600, 7)
equal('a job is scheduled', Sidekiq::ScheduledSet.new.map(&:jid), [later])
equal('it is found by a scan', Sidekiq::ScheduledSet.new.scan('Add').map(&:jid), [later])
equal('it is found by its id', Sidekiq::ScheduledSet.new.find_job(later).delete, true)
equal('it is gone', Sidekiq::ScheduledSet.new.size, 0)

# One thread obeys the order of the queues.
Usual.perform_async('usual')
Urgent.perform_async('urgent')
pid = worker(1)
wait_for('both have run') { redis { |server| server.llen('order') } == 2 }
equal('the queues are in order', redis { |server| server.lrange('order', 0, -1) }, %w[urgent usual])
stop(pid)

pid = worker(5)
many = Sidekiq::Client.push_bulk('class' => Add, 'args' => (1..500).map { |number| [number] })
soon = Add.perform_in(0.5, 1000)
failing = Failing.perform_async(2)
dying = Dying.perform_async
# Its times are long; the web pages can shorten them.
2.times { wait_for('a job is to be tried again') { Sidekiq::RetrySet.new.find_job(failing)&.retry } }
wait_for('all have run') { ((many + [soon, failing]) - done).empty? }
equal('each has run once', done.tally.select { |_, count| count > 1 }, {})
equal('their sum', redis { |server| server.get('sum') }, (500 * 501 / 2 + 1000).to_s)
equal('a job is tried again', redis { |server| server.get("tries:#{failing}") }, '3')
wait_for('a job is dead') { Sidekiq::DeadSet.new.size == 1 }
equal('which one', Sidekiq::DeadSet.new.map { |job| [job.jid, job['error_message']] }, [[dying, 'it never works']])
wait_for('failures are counted') { Sidekiq::Stats.new.failed == 3 }
equal('nothing is left to do', [Sidekiq::Stats.new.enqueued, Sidekiq::Stats.new.retry_size], [0, 0])
equal('a process is known', Sidekiq::ProcessSet.new.map { |process| [process['pid'], process['queues'].sort] }, [[pid, %w[critical default]]])

# A worker that is stopped under a job gives it back.
held = Holding.perform_async
wait_for('it has begun') { redis { |server| server.lrange('begun', 0, -1) }.include?(held) }
wait_for('it is shown as running') { Sidekiq::Workers.new.any? { |_, _, work| work['payload'].to_s.include?(held) } }
stop(pid)
equal('it is in its queue again', Sidekiq::Queue.new.map(&:jid), [held])
pid = worker(2)
wait_for('it has begun again') { redis { |server| server.lrange('begun', 0, -1) }.count(held) == 2 }
redis { |server| server.rpush("gate:#{held}", 'open') }
wait_for('it is done') { done.include?(held) }
stop(pid)
equal('no worker is left', Sidekiq::ProcessSet.new.size, 0)
equal('Sidekiq has nothing to warn of', File.readlines(LOG).grep(/evict|WARNING|Redis version/), [])
equal('all is in one database', redis { |server| server.info('keyspace').keys }, ['db5'])

puts "#{$passed} passed, #{$failed} failed"
exit($failed.zero?)
